"""Embeddings of packed tokens, each distinct token once."""

from torch import Tensor, nn
from torch.nn.functional import embedding


def _pick(x: Tensor, rows: Tensor | None) -> Tensor:
    """Return rows ``(n,)`` of a matrix, or all; its gradient is quicker than `index_select`'s."""
    return x if rows is None else embedding(rows, x)


def _embed(embeddings: nn.Module, tokens: Tensor, fixed: bool) -> tuple[Tensor, Tensor | None]:
    """Return embeddings of tokens ``(total, features)``, and the row of each token or None.

    Unless shapes are fixed, each distinct token has one row: batches repeat their tokens (64 words
    have a thousand characters, a hundred of them distinct).
    """
    rows = None
    if not fixed and tokens.size(1) == 1:
        tokens, rows = tokens.unique(return_inverse=True)
        tokens, rows = tokens.unsqueeze(1), rows.squeeze(1)
    return embeddings(tokens.unsqueeze(0))[0], rows
