"""A model file as something to call: `transduce.load`."""
