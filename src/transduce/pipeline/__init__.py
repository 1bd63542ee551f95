"""Load a model file and call it: `transduce.load`."""
