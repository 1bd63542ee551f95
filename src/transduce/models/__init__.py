"""The models: one architecture per file, with its config beside its class."""
