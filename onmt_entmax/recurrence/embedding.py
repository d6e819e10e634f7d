"""Embeddings of packed tokens: each distinct token is embedded and multiplied once.

That saves time since a batch repeats its tokens: 64 words may have a thousand characters, of which
a hundred are distinct.
"""

from typing import NamedTuple

from torch import Tensor, nn
from torch.nn.functional import embedding


class Embedded(NamedTuple):
    """Packed tokens, embedded.

    Attributes:
        vectors: embeddings ``(distinct, size)``.
        rows: the row of each token in `vectors`, ``(total,)``; None: each token has a row of its
            own, in order.
    """

    vectors: Tensor
    rows: Tensor | None


def embed_distinct(embeddings: nn.Module, tokens: Tensor, fixed: bool) -> Embedded:
    """Embed each distinct token of packed ones.

    Args:
        embeddings: OpenNMT-py's module of embeddings.
        tokens: ids ``(total, features)``.
        fixed: whether no shape may depend on the ids, as in a CUDA graph. Then each token has a row
            of its own.
    """
    rows = None
    if not fixed and tokens.size(1) == 1:
        tokens, rows = tokens.unique(return_inverse=True)
        tokens, rows = tokens.unsqueeze(1), rows.squeeze(1)
    return Embedded(embeddings(tokens.unsqueeze(0))[0], rows)


def expand(distinct: Tensor, rows: Tensor | None) -> Tensor:
    """Return the vector of each token, ``(total, size)``.

    Args:
        distinct: vectors of the distinct tokens, ``(distinct, size)``.
        rows: the row of each token, see `Embedded`.
    """
    # `embedding` selects rows as `index_select` does, but its backward pass is faster.
    return distinct if rows is None else embedding(rows, distinct)
