"""Measures of attention heads over a corpus: means over tokens of those of `head_measures.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tools.papers.head_attention import Floats
from tools.papers.head_measures import (
    at_offset,
    available_keys,
    clusters,
    divergence,
    inside,
    interrogation,
    merging,
)

OFFSETS = (-2, -1, 0, 1, 2)
BINS = 20  # of a histogram of densities


class Measures:
    """The measures of one kind of attention over a corpus: `add` each sentence, then `summary`.

    Args:
        kind: encoder, decoder or context.
        alphas: of each head, `(layers, heads)`.
        words: interrogative words of the queries' language.

    Attributes:
        density: by sentence, `(layers, heads)`.
    """

    def __init__(self, kind: str, alphas: Floats, words: Iterable[str] = ()) -> None:
        self.kind = kind
        self.alphas = alphas
        self.words = words
        self.density: dict[int, Floats] = {}
        # By offset, the mean weight there in each sentence, (layers, heads).
        self._confidence: dict[int, list[Floats]] = defaultdict(list)
        # Of each mean, the sum of its values, (layers, heads) or (layers,), and their number.
        self._totals: dict[str, Any] = defaultdict(float)
        self._counts: dict[str, int] = defaultdict(int)

    def _count(self, name: str, values: Any) -> None:
        """Add values `(layers, heads, number)` or `(layers, number)` to the mean of this name."""
        self._totals[name] += values.sum(-1)
        self._counts[name] += values.shape[-1]

    def add(self, index: int, weights: Floats, tokens: Sequence[str]) -> None:
        """Add a sentence.

        Args:
            index: of the sentence.
            weights: `(layers, heads, queries, keys)`.
            tokens: of the queries.
        """
        causal = self.kind == "decoder"
        available = available_keys(weights, causal)
        dense = (self.alphas == 1)[:, :, None]  # softmax, even where a weight rounds to zero
        shares = np.where(dense, 1.0, (weights > 0).sum(-1) / available)
        self.density[index] = shares.mean(-1)
        self._count("attended", shares * available)
        self._count("divergence", divergence(weights, causal))
        if self.kind != "context":
            self._add_offsets(weights, len(tokens), causal)
        if self.kind == "encoder":
            self._add_clusters(weights, tokens)
            self._add_interrogation(weights, tokens)

    def _add_offsets(self, weights: Floats, length: int, causal: bool) -> None:
        """Count the weights of a self-attention at each offset."""
        for offset in OFFSETS:
            if length > abs(offset) and not (causal and offset > 0):
                at, largest = at_offset(weights, offset)
                self._confidence[offset].append(at.mean(-1))
                self._count(f"largest {offset}", largest)

    def _add_clusters(self, weights: Floats, tokens: Sequence[str]) -> None:
        """Count the weights inside subword clusters."""
        numbers = clusters(tokens)
        within = inside(weights, numbers)
        divided = [position for position, number in enumerate(numbers) if numbers.count(number) > 1]
        self._count("inside", within)
        self._count("inside of several", within[..., divided])
        self._count("merging", merging(weights, numbers))

    def _add_interrogation(self, weights: Floats, tokens: Sequence[str]) -> None:
        """Count the weights that interrogative words give to the last token."""
        positions, is_question = interrogation(tokens, self.words)
        if positions:
            name = "question mark" if is_question else "other last token"
            self._count(name, weights[:, :, positions, -1])

    def _mean(self, name: str) -> Any:
        """Return a mean, as lists `[layer][head]` or `[layer]`; None if it has no values."""
        count = self._counts.get(name)
        return (self._totals[name] / count).tolist() if count else None

    def summary(self) -> dict[str, Any]:
        """Return the measures by name, with lists `[layer][head]`, for JSON."""
        density = np.stack([*self.density.values()])  # (sentences, layers, heads)
        counts, _ = np.histogram(density, BINS, (0.0, 1.0))
        measures: dict[str, Any] = {
            "alpha": self.alphas.tolist(),
            "attended": self._mean("attended"),
            "density": density.mean(0).tolist(),
            "density_histogram": (counts / counts.sum()).tolist(),
            "density_by_layer": density.mean((0, 2)).tolist(),
            "divergence": self._mean("divergence") or [],
        }
        if self._confidence:
            measures["positional"] = self._positional()
        if self.kind == "encoder":
            measures |= {
                "inside_cluster": self._mean("inside"),
                "inside_cluster_of_several": self._mean("inside of several"),
                "merging": self._mean("merging"),
                "interrogation": {
                    "words_in_questions": self._counts["question mark"],
                    "weight_on_question_mark": self._mean("question mark"),
                    "words_elsewhere": self._counts["other last token"],
                    "weight_on_last_token": self._mean("other last token"),
                },
            }
        return measures

    def _positional(self) -> dict[str, Any]:
        """Return the measures by offset."""
        return {
            str(offset): {
                "share_largest": self._mean(f"largest {offset}"),
                "mean_weight": np.mean(self._confidence[offset], 0).tolist(),
                "median_weight": np.median(self._confidence[offset], 0).tolist(),
            }
            for offset in sorted(self._confidence)
        }
