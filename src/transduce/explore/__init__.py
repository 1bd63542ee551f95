"""The explorer: a page that shows what a model does with a sentence."""
