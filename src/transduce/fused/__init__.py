"""Kernels that stand in for whole stacks: an encoder's pass, a decoder's step, a search."""
