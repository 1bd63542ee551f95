"""Recipes: the settings of a training, from TOML to typed sections."""
