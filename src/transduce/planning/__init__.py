"""A training without a recipe: what its data is, what follows from that, and how long it takes on this machine."""
