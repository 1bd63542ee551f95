"""A training as a table of settings, from TOML to typed sections."""
