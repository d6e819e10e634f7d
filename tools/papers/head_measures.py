"""Measures of attention heads, of one sentence and over a corpus.

`head_tables.py` defines them in words.

Weights of one kind of attention are `(layers, heads, queries, keys)`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.papers.head_attention import Floats
from tools.papers.pictures import JOINER

OFFSETS = (-2, -1, 0, 1, 2)
BINS = 20  # of a histogram of densities
SPACER, CONTINUED = "▁", "@@"  # subword marks of SentencePiece and subword-nmt
HYPHENS = ("-", "‐", "‑", "@-@")

# --- tokens ----------------------------------------------------------------------------------


def clusters(tokens: Sequence[str]) -> list[int]:
    """Return for each token the number of its subword cluster.

    A cluster is a word of several subwords, with its hyphens; any other token is its own cluster.
    Punctuation that a tokeniser split off is no part of the word it stood beside.
    """
    spaced = any(token.startswith(SPACER) for token in tokens)
    numbers = list(range(len(tokens)))
    for position in range(1, len(tokens)):
        before = tokens[position - 1]
        token = tokens[position]
        joined = (
            before.endswith((JOINER, CONTINUED))
            or token.startswith(JOINER)
            or (spaced and not token.startswith(SPACER))
            or "@-@" in (before, token)
        )
        if joined and _is_part_of_word(before) and _is_part_of_word(token):
            numbers[position] = numbers[position - 1]
    return numbers


def _is_part_of_word(token: str) -> bool:
    """Return whether a token is a part of a word or a hyphen, and no punctuation."""
    bare = token.strip(JOINER + SPACER).removesuffix(CONTINUED)
    return bare in HYPHENS or any(character.isalnum() for character in bare)


# --- measures of one sentence ----------------------------------------------------------------


def available_keys(weights: Floats, causal: bool) -> Floats:
    """Return the number of keys that each query may attend to, `(queries,)`."""
    queries, keys = weights.shape[-2:]
    return np.arange(1.0, queries + 1) if causal else np.full(queries, float(keys))


def divergence(weights: Floats, causal: bool) -> Floats:
    """Return the Jensen-Shannon divergence between the heads of a layer (equation 11).

    Entropies are to the base of the number of available keys, so that 1 is the largest value. A
    query with a single key has none and is left out.

    Returns:
        `(layers, queries with several keys)`.
    """
    available = available_keys(weights, causal)
    distributions = weights[:, :, available > 1]
    base = np.log(available[available > 1])
    return (_entropy(distributions.mean(1)) - _entropy(distributions).mean(1)) / base


def _entropy(distributions: Floats) -> Floats:
    """Return Shannon's entropy of distributions over the last dimension, in nats."""
    safe = np.where(distributions > 0, distributions, 1.0)
    entropies: Floats = -(distributions * np.log(safe)).sum(-1)
    return entropies


def at_offset(weights: Floats, offset: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the weights at an offset from each query, and whether they are the query's largest.

    Args:
        weights: of a self-attention.
        offset: -1: the token before.

    Returns:
        Both `(layers, heads, queries that have such a token)`.
    """
    rows = np.arange(max(0, -offset), weights.shape[-2] - max(0, offset))
    at = weights[:, :, rows, rows + offset]
    return at, at >= weights[:, :, rows].max(-1)


def inside(weights: Floats, numbers: Sequence[int]) -> Floats:
    """Return the weight inside each token's own cluster, `(layers, heads, tokens)`."""
    within: Floats = (weights * np.equal.outer(numbers, numbers)).sum(-1)
    return within


def merging(weights: Floats, numbers: Sequence[int]) -> Floats:
    """Return how far each head merges each cluster (section 5.2, footnote 3).

    The score is the largest weight that a token of the cluster gives to the other tokens of the
    cluster together; in a cluster of one token, the weight that it gives itself.

    Returns:
        `(layers, heads, clusters)`.
    """
    own = np.diagonal(weights, axis1=-2, axis2=-1)
    others = inside(weights, numbers) - own
    scores = []
    for number in dict.fromkeys(numbers):
        positions = [position for position, other in enumerate(numbers) if other == number]
        scores.append((others if len(positions) > 1 else own)[..., positions].max(-1))
    return np.stack(scores, -1)


def interrogation(tokens: Sequence[str], words: Iterable[str]) -> tuple[list[int], bool]:
    """Return the positions of interrogative words, and whether a question mark ends the tokens."""
    bare = [token.strip(JOINER + SPACER).lower() for token in tokens]
    return [i for i, token in enumerate(bare[:-1]) if token in words], bare[-1] == "?"


# --- measures of a corpus --------------------------------------------------------------------


class Measures:
    """The measures of one kind of attention over a corpus.

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
        # Of means, by name.
        self._totals: dict[str, Any] = defaultdict(float)
        self._counts: dict[str, int] = defaultdict(int)

    def _count(self, name: str, values: Any) -> None:
        """Add values `(layers, heads, any number)`, or without heads, to a mean."""
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
            self._count("asked" if is_question else "told", weights[:, :, positions, -1])

    def _mean(self, name: str) -> Any:
        """Return a mean, as lists `[layer][head]` or `[layer]`; None of nothing."""
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
                    "words_in_questions": self._counts["asked"],
                    "weight_on_question_mark": self._mean("asked"),
                    "words_elsewhere": self._counts["told"],
                    "weight_on_last_token": self._mean("told"),
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
