"""The base of all other packages: errors, settings, the registry, atomic files, tensor files and model files."""
