"""Search: from a model's predictions to hypotheses."""
