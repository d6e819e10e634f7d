"""Former place of the functions, for modules that still import them from here."""

from onmt_entmax.sparse.loss import entmax_loss
from onmt_entmax.sparse.mapping import entmax, log_entmax

__all__ = ["entmax", "entmax_loss", "log_entmax"]
