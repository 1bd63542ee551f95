"""Which files, columns and languages hold the pairs that somebody names."""
