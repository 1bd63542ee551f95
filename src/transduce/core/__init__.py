"""What everything stands on: errors, settings, names, files that are whole or not there, tensors in files."""
