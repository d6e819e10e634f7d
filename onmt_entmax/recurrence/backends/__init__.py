"""A step of a cell and of attention in PyTorch, C++ and Triton, and the choice among them."""
