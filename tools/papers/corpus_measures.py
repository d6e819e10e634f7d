"""Measures of attention heads over a corpus: means over its tokens of those in `head_measures.py`.

A measure takes the sentences one by one (`add`), and then returns its means for JSON (`summary`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tools.papers.head_attention import Floats
from tools.papers.head_measures import at_offset, available_keys, divergence, inside, merging
from tools.papers.head_summary import (
    ByHead,
    ByLayer,
    EncoderSummary,
    InterrogationSummary,
    KindSummary,
    OffsetSummary,
    SelfAttentionSummary,
)
from tools.papers.head_tokens import clusters, divided_positions, interrogation

OFFSETS = (-2, -1, 0, 1, 2)  # from a token to the one that it attends to
BINS = 20  # of the histogram of densities


class Mean:
    """The mean of values that come sentence by sentence.

    Attributes:
        count: number of values.
    """

    def __init__(self) -> None:
        self.count = 0
        self._total: Floats | float = 0.0  # (layers, heads) or (layers,)

    def add(self, values: Floats | NDArray[np.bool_]) -> None:
        """Add values `(layers, heads, number)` or `(layers, number)`."""
        self._total = self._total + values.sum(-1)
        self.count += values.shape[-1]

    def by_head(self) -> ByHead:
        """Return the mean of values `(layers, heads, number)`; there must be some."""
        return self._mean().tolist()

    def by_layer(self) -> ByLayer:
        """Return the mean of values `(layers, number)`; empty without values."""
        return self._mean().tolist() if self.count else []

    def _mean(self) -> Floats:
        """Return the mean as an array."""
        assert self.count, "no values"
        return np.asarray(self._total) / self.count


def _if_any(mean: Mean) -> ByHead | None:
    """Return a mean by head; None without values."""
    return mean.by_head() if mean.count else None


class OffsetMeasures:
    """The weights of a self-attention at one offset from the query."""

    def __init__(self) -> None:
        self._largest = Mean()
        self._mean_weights: list[Floats] = []  # for each sentence, (layers, heads)

    def add(self, weights: Floats, offset: int) -> None:
        """Add the weights `(layers, heads, queries, keys)` of a sentence."""
        offset_weights = at_offset(weights, offset)
        self._mean_weights.append(offset_weights.weights.mean(-1))
        self._largest.add(offset_weights.is_largest)

    def summary(self) -> OffsetSummary:
        """Return the measures by name."""
        return {
            "share_largest": self._largest.by_head(),
            "mean_weight": np.mean(self._mean_weights, 0).tolist(),
            "median_weight": np.median(self._mean_weights, 0).tolist(),
        }


class InterrogationMeasures:
    """The weights that an encoder's interrogative words give to the last token.

    Args:
        words: interrogative words, in lower case.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._words = words
        self._question_mark = Mean()
        self._other_last_token = Mean()

    def add(self, weights: Floats, tokens: Sequence[str]) -> None:
        """Add the weights `(layers, heads, tokens, tokens)` of a sentence."""
        signs = interrogation(tokens, self._words)
        if signs.positions:
            mean = self._question_mark if signs.ends_with_mark else self._other_last_token
            mean.add(weights[:, :, signs.positions, -1])

    def summary(self) -> InterrogationSummary:
        """Return the measures by name."""
        return {
            "words_in_questions": self._question_mark.count,
            "weight_on_question_mark": _if_any(self._question_mark),
            "words_elsewhere": self._other_last_token.count,
            "weight_on_last_token": _if_any(self._other_last_token),
        }


class Measures:
    """The measures of one kind of attention over a corpus; all kinds have these.

    Args:
        alphas: alpha of each head, `(layers, heads)`.
        is_causal: whether no query may attend to a later key, as in a decoder's self-attention.

    Attributes:
        alphas: alpha of each head, `(layers, heads)`.
        density: density of each head by sentence, `(layers, heads)`.
    """

    def __init__(self, alphas: Floats, *, is_causal: bool = False) -> None:
        self.density: dict[int, Floats] = {}
        self.alphas = alphas
        self._is_causal = is_causal
        self._attended = Mean()
        self._divergence = Mean()

    def add(self, index: int, weights: Floats, tokens: Sequence[str]) -> None:
        """Add a sentence.

        Args:
            index: index of the sentence.
            weights: `(layers, heads, queries, keys)`.
            tokens: tokens of the queries.
        """
        available = available_keys(weights, self._is_causal)
        dense = (self.alphas == 1)[:, :, None]  # softmax, even where a weight rounds to zero
        shares = np.where(dense, 1.0, (weights > 0).sum(-1) / available)
        self.density[index] = shares.mean(-1)
        self._attended.add(shares * available)
        self._divergence.add(divergence(weights, self._is_causal))

    def summary(self) -> KindSummary:
        """Return the measures by name, for JSON; at least one sentence must have been added."""
        density = np.stack([*self.density.values()])  # (sentences, layers, heads)
        counts, _ = np.histogram(density, BINS, (0.0, 1.0))
        return {
            "alpha": self.alphas.tolist(),
            "attended": self._attended.by_head(),
            "density": density.mean(0).tolist(),
            "density_histogram": (counts / counts.sum()).tolist(),
            "density_by_layer": density.mean((0, 2)).tolist(),
            "divergence": self._divergence.by_layer(),
        }


class SelfAttentionMeasures(Measures):
    """The measures of a self-attention: also those at an offset from the query."""

    def __init__(self, alphas: Floats, *, is_causal: bool) -> None:
        super().__init__(alphas, is_causal=is_causal)
        self._by_offset: dict[int, OffsetMeasures] = defaultdict(OffsetMeasures)

    def add(self, index: int, weights: Floats, tokens: Sequence[str]) -> None:
        """Add a sentence, as `Measures.add` does."""
        super().add(index, weights, tokens)
        for offset in OFFSETS:
            if len(tokens) > abs(offset) and not (self._is_causal and offset > 0):
                self._by_offset[offset].add(weights, offset)

    def summary(self) -> SelfAttentionSummary:
        """Return the measures by name, as `Measures.summary` does."""
        by_offset = {
            str(offset): self._by_offset[offset].summary() for offset in sorted(self._by_offset)
        }
        return {**super().summary(), "positional": by_offset}


class EncoderMeasures(SelfAttentionMeasures):
    """The measures of an encoder: also those of clusters of subwords, and of questions.

    Args:
        alphas: alpha of each head, `(layers, heads)`.
        words: interrogative words of the source's language, in lower case.
    """

    def __init__(self, alphas: Floats, words: Iterable[str] = ()) -> None:
        super().__init__(alphas, is_causal=False)
        self._inside = Mean()
        self._inside_of_several = Mean()
        self._merging = Mean()
        self._interrogation = InterrogationMeasures(words)

    def add(self, index: int, weights: Floats, tokens: Sequence[str]) -> None:
        """Add a sentence, as `Measures.add` does."""
        super().add(index, weights, tokens)
        numbers = clusters(tokens)
        within = inside(weights, numbers)
        self._inside.add(within)
        self._inside_of_several.add(within[..., divided_positions(numbers)])
        self._merging.add(merging(weights, numbers))
        self._interrogation.add(weights, tokens)

    def summary(self) -> EncoderSummary:
        """Return the measures by name, as `Measures.summary` does."""
        return {
            **super().summary(),
            "inside_cluster": self._inside.by_head(),
            "inside_cluster_of_several": _if_any(self._inside_of_several),
            "merging": self._merging.by_head(),
            "interrogation": self._interrogation.summary(),
        }


class ModelMeasures(NamedTuple):
    """The measures of each kind of attention of a Transformer."""

    encoder: EncoderMeasures
    decoder: SelfAttentionMeasures
    context: Measures
