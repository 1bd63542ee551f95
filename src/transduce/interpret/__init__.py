"""What a model did with a text: its attention, which heads matter, its steps; pictures of them."""
