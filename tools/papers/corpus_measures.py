"""Measures of attention heads over a corpus: means over its tokens of those in `head_measures.py`.

A measure takes the sentences one by one (`add`), and then returns its means for JSON (`summary`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.papers.head_attention import Floats
from tools.papers.head_measures import at_offset, available_keys, divergence, inside, merging
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
        self._total: Any = 0.0  # (layers, heads) or (layers,)

    def add(self, values: NDArray[Any]) -> None:
        """Add values `(layers, heads, number)` or `(layers, number)`."""
        self._total += values.sum(-1)
        self.count += values.shape[-1]

    def lists(self) -> Any:
        """Return the mean as lists `[layer][head]` or `[layer]`; None without values."""
        return (self._total / self.count).tolist() if self.count else None


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

    def summary(self) -> dict[str, Any]:
        """Return the measures by name."""
        return {
            "share_largest": self._largest.lists(),
            "mean_weight": np.mean(self._mean_weights, 0).tolist(),
            "median_weight": np.median(self._mean_weights, 0).tolist(),
        }


class ClusterMeasures:
    """The weights of an encoder inside clusters of subwords."""

    def __init__(self) -> None:
        self._inside = Mean()
        self._inside_of_several = Mean()
        self._merging = Mean()

    def add(self, weights: Floats, tokens: Sequence[str]) -> None:
        """Add the weights `(layers, heads, tokens, tokens)` of a sentence."""
        numbers = clusters(tokens)
        within = inside(weights, numbers)
        self._inside.add(within)
        self._inside_of_several.add(within[..., divided_positions(numbers)])
        self._merging.add(merging(weights, numbers))

    def summary(self) -> dict[str, Any]:
        """Return the measures by name."""
        return {
            "inside_cluster": self._inside.lists(),
            "inside_cluster_of_several": self._inside_of_several.lists(),
            "merging": self._merging.lists(),
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

    def summary(self) -> dict[str, Any]:
        """Return the measures by name."""
        return {
            "words_in_questions": self._question_mark.count,
            "weight_on_question_mark": self._question_mark.lists(),
            "words_elsewhere": self._other_last_token.count,
            "weight_on_last_token": self._other_last_token.lists(),
        }


class Measures:
    """All measures of one kind of attention over a corpus.

    Args:
        kind: "encoder", "decoder" or "context".
        alphas: alpha of each head, `(layers, heads)`.
        words: interrogative words of the queries' language, in lower case.

    Attributes:
        alphas: alpha of each head, `(layers, heads)`.
        density: density of each head by sentence, `(layers, heads)`.
    """

    def __init__(self, kind: str, alphas: Floats, words: Iterable[str] = ()) -> None:
        self.density: dict[int, Floats] = {}
        self.alphas = alphas
        self._is_causal = kind == "decoder"
        self._is_self_attention = kind != "context"
        self._attended = Mean()
        self._divergence = Mean()
        self._by_offset: dict[int, OffsetMeasures] = defaultdict(OffsetMeasures)
        self._clusters = ClusterMeasures() if kind == "encoder" else None
        self._interrogation = InterrogationMeasures(words) if kind == "encoder" else None

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
        if self._is_self_attention:
            for offset in OFFSETS:
                if len(tokens) > abs(offset) and not (self._is_causal and offset > 0):
                    self._by_offset[offset].add(weights, offset)
        if self._clusters is not None:
            self._clusters.add(weights, tokens)
        if self._interrogation is not None:
            self._interrogation.add(weights, tokens)

    def summary(self) -> dict[str, Any]:
        """Return the measures by name, with lists `[layer][head]`, for JSON."""
        density = np.stack([*self.density.values()])  # (sentences, layers, heads)
        counts, _ = np.histogram(density, BINS, (0.0, 1.0))
        measures: dict[str, Any] = {
            "alpha": self.alphas.tolist(),
            "attended": self._attended.lists(),
            "density": density.mean(0).tolist(),
            "density_histogram": (counts / counts.sum()).tolist(),
            "density_by_layer": density.mean((0, 2)).tolist(),
            "divergence": self._divergence.lists() or [],
        }
        if self._by_offset:
            measures["positional"] = {
                str(offset): self._by_offset[offset].summary() for offset in sorted(self._by_offset)
            }
        if self._clusters is not None:
            measures |= self._clusters.summary()
        if self._interrogation is not None:
            measures["interrogation"] = self._interrogation.summary()
        return measures
