"""Embeddings of packed tokens: each distinct token is embedded and multiplied once.

Batches repeat their tokens: 64 words have a thousand characters, a hundred of them distinct.
"""

from torch import Tensor, nn
from torch.nn.functional import embedding


def embed_distinct(
    embeddings: nn.Module, tokens: Tensor, fixed: bool
) -> tuple[Tensor, Tensor | None]:
    """Return the embeddings of packed tokens, and the row of each token.

    Args:
        embeddings: OpenNMT-py's.
        tokens: ids ``(total, features)``.
        fixed: whether shapes are fixed. Then each token has a row of its own.

    Returns:
        Embeddings ``(distinct, size)``, and for `expand` the row of each token ``(total,)``, or
        None if each has its own.
    """
    rows = None
    if not fixed and tokens.size(1) == 1:
        tokens, rows = tokens.unique(return_inverse=True)
        tokens, rows = tokens.unsqueeze(1), rows.squeeze(1)
    return embeddings(tokens.unsqueeze(0))[0], rows


def expand(distinct: Tensor, rows: Tensor | None) -> Tensor:
    """Return the vector of each token ``(total, size)``, given those of `embed_distinct`'s rows.

    Its gradient is quicker than that of `index_select`.
    """
    return distinct if rows is None else embedding(rows, distinct)
