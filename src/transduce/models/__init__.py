"""One architecture a file, its config beside its class."""
