"""What attention is stacked with."""
