"""The C++ backend: entmax and attention on a CPU, for float32 and float64.

cpu_rows.py and cpu_attention.py call the functions of the compiled module by cpu_module.py.
"""

from onmt_entmax.sparse.backends.cpu_attention import backward, dropout_factors, forward
from onmt_entmax.sparse.backends.cpu_module import module
from onmt_entmax.sparse.backends.cpu_rows import conjugate, gradients, mapping, scaled, solve

# The largest alpha: up to it, the scaled powers of csrc/native_anchor.h stay in float64's range.
# With the scale 2^900, beta must be below 2^123; 2^64 is far below, and larger than any use has.
LARGEST = 2.0**64

__all__ = [
    "LARGEST",
    "backward",
    "conjugate",
    "dropout_factors",
    "forward",
    "gradients",
    "mapping",
    "module",
    "scaled",
    "solve",
]
