"""Kernels that replace a whole stack: an encoder's pass, a decoder's step, a search."""
