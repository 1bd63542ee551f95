"""Files -> examples -> tokens -> batches."""
