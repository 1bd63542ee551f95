"""What a program calls: `transduce.train` and `transduce.evaluate`, which do what the commands of these names do."""
