"""Recipes compared fairly: the same data, tokenizer, batches, seeds and budget; one table, one page."""
