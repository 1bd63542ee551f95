"""Sound and recordings -> filterbanks."""
