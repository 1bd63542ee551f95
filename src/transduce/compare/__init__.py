"""Compare recipes fairly: with the same data, tokenizer, batches, seeds and budget, in one table and one page."""
