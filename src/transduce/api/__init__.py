"""What a program calls: `transduce.train`, `transduce.evaluate` and `transduce.explorer`, which do what commands do."""
