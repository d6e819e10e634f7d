"""Several processes: those that torchrun starts, and files that they translate together."""
