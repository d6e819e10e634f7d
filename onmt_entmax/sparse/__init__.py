"""Alpha-entmax for PyTorch: mappings, losses and modules. This folder needs torch alone."""

from onmt_entmax.sparse.entropy import tsallis_entropy
from onmt_entmax.sparse.functional import entmax, entmax_loss, log_entmax
from onmt_entmax.sparse.modules import Entmax, EntmaxLoss

__all__ = ["Entmax", "EntmaxLoss", "entmax", "entmax_loss", "log_entmax", "tsallis_entropy"]
