"""From a model's steps to hypotheses."""
