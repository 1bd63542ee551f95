"""Model files of others, read and written."""
