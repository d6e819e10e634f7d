"""Alpha-entmax for PyTorch: mappings, attention, losses and modules, which need torch alone.

`reference` defines what everything else must equal; `backends` has the faster implementations.
"""

from onmt_entmax.sparse.attention import entmax_attention, entmax_attention_weights
from onmt_entmax.sparse.entropy import tsallis_entropy
from onmt_entmax.sparse.loss import entmax_loss
from onmt_entmax.sparse.mapping import entmax, log_entmax
from onmt_entmax.sparse.modules import Entmax, EntmaxLoss

__all__ = [
    "Entmax",
    "EntmaxLoss",
    "entmax",
    "entmax_attention",
    "entmax_attention_weights",
    "entmax_loss",
    "log_entmax",
    "tsallis_entropy",
]


def __dir__() -> list[str]:
    return __all__
