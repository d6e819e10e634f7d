"""The Triton backend: entmax and attention on a GPU, for alpha from 1 to 2.

triton_rows.py and triton_attention.py start the kernels.
"""

from onmt_entmax.sparse.backends.triton_attention import backward, dropout_factors, forward
from onmt_entmax.sparse.backends.triton_rows import conjugate, gradients, mapping, solve
from onmt_entmax.sparse.reference import scaled

__all__ = [
    "backward",
    "conjugate",
    "dropout_factors",
    "forward",
    "gradients",
    "mapping",
    "scaled",
    "solve",
]
