"""What a search cannot do."""

from __future__ import annotations

from onmt_entmax.errors import UserError


class SearchError(UserError):
    """A model that cannot be searched as asked."""


def no_support() -> SearchError:
    """The error of a model that gives nothing a probability."""
    return SearchError(
        "the model gives no token a positive probability: its scores are all -inf or nan, "
        "as those of a model whose training diverged"
    )
