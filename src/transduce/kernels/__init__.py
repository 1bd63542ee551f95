"""Products and kernels in C++, with the same in torch for machines without them."""
