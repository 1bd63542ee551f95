"""Translation with NumPy, tokenizers and the kernels alone; also a wheel, `transduce-runtime` (packaging/runtime)."""
