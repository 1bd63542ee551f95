"""Matrix products and C++ kernels, with equivalents in torch for machines without them."""
