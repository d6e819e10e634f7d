"""What the heads of a Transformer attend to: the measures of Correia et al. (2019), section 5.

All of them are computed from the attention weights of a model that is forced along given targets.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from onmt_entmax.data.batch import Example, group_by_length, make_batch
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.figures.style import JOINER
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.nn.transformer import KINDS, EntmaxMultiHeadedAttention, attentions

Floats = NDArray[np.float64]

OFFSETS = (-2, -1, 0, 1, 2)
POSITIONAL = 0.9  # share of the tokens at which a positional head's largest weight is (Voita 2019)
BINS = 20  # of a histogram of densities
INTERROGATIVES = {
    "de": "wer wen wem wessen was wann wo woher wohin warum wieso weshalb wie welche welcher "
    "welches welchen welchem",
    "en": "who whom whose what when where why how which",
}
SPACER, CONTINUED = "▁", "@@"  # subword marks of SentencePiece and subword-nmt
HYPHENS = frozenset(("-", "‐", "‑", "@-@"))


@dataclass(frozen=True)
class Attended:
    """The attention of every head in one sentence pair.

    Attributes:
        index: place of the pair in the corpus.
        source: the tokens of the source.
        target: the tokens that the decoder read; the first is the start symbol.
        weights: by kind ``(layers, heads, queries, keys)``. A decoder's self-attention has zeros
            above its diagonal.
    """

    index: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: Mapping[str, Floats]

    def tokens(self, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the tokens of the queries and of the keys."""
        source, target = self.source, self.target
        return {
            "encoder": (source, source),
            "decoder": (target, target),
            "context": (target, source),
        }[kind]


@torch.inference_mode()
def attend(
    model: SparseNMTModel,
    vocabularies: Vocabularies,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    batch_size: int = 32,
) -> Iterator[Attended]:
    """Yield the attention of all heads along given targets, ordered by source length.

    Args:
        model: a Transformer in evaluation mode.
        vocabularies: its own.
        pairs: ids of source and target, without start and end symbol.
        batch_size: sentences of a batch.
    """
    modules = attentions(model)
    examples = [Example(source, target, i) for i, (source, target) in enumerate(pairs)]
    with _weights_kept(modules) as kept:
        for group in group_by_length(examples, batch_size, "sents"):
            batch = make_batch(group, vocabularies)
            kept.clear()
            model.hidden_states(batch)
            for column, index in enumerate(batch.indices):
                source, target = pairs[index]
                sizes = {"source": len(source), "target": len(target) + 1}
                weights = {}
                for kind, layers in modules.items():
                    queries = sizes["source" if kind == "encoder" else "target"]
                    keys = sizes["target" if kind == "decoder" else "source"]
                    found = torch.stack([kept[layer][column] for layer in layers])
                    weights[kind] = found[..., :queries, :keys].double().numpy()
                yield Attended(
                    index,
                    tuple(vocabularies.source.tokens[i] for i in source),
                    tuple(
                        vocabularies.target.tokens[i] for i in (vocabularies.target.bos, *target)
                    ),
                    weights,
                )


@contextmanager
def _weights_kept(
    modules: Mapping[str, Sequence[EntmaxMultiHeadedAttention]],
) -> Iterator[dict[EntmaxMultiHeadedAttention, Tensor]]:
    """Keep the weights that each attention module computes."""
    kept: dict[EntmaxMultiHeadedAttention, Tensor] = {}

    def keep(module: Any, _: Any, output: Any) -> None:
        kept[module] = output[1]

    with ExitStack() as stack:
        for module in (module for layers in modules.values() for module in layers):
            stack.callback(setattr, module, "returns_weights", module.returns_weights)
            stack.callback(module.register_forward_hook(keep).remove)
            module.returns_weights = True
        yield kept


def head_alphas(model: SparseNMTModel) -> dict[str, Floats]:
    """Return the alpha of each head by kind, ``(layers, heads)``; of fixed alphas too."""
    found = {}
    for kind, layers in attentions(model).items():
        rows = [torch.as_tensor(layer.alphas()).expand(layer.head_count) for layer in layers]
        found[kind] = torch.stack(rows).detach().double().numpy()
    return found


# --- words of subwords -----------------------------------------------------------------------


def clusters(tokens: Sequence[str]) -> list[int]:
    """Return for each token the number of its subword cluster.

    A cluster is a word of several subwords, with its hyphens; any other token is one of its own.
    Punctuation that a tokeniser split off is no part of the word it stood beside.
    """
    spaced = any(token.startswith(SPACER) for token in tokens)
    numbers: list[int] = []
    for place, token in enumerate(tokens):
        before = tokens[place - 1] if place else ""
        joined = place > 0 and (
            before.endswith((JOINER, CONTINUED))
            or token.startswith(JOINER)
            or (spaced and not token.startswith(SPACER))
            or "@-@" in (before, token)
        )
        if joined and _is_part(before) and _is_part(token):
            numbers.append(numbers[-1])
        else:
            numbers.append(place)
    return numbers


def _is_part(token: str) -> bool:
    """Whether a token has letters or digits, or is a hyphen."""
    bare = token.strip(JOINER + SPACER).removesuffix(CONTINUED)
    return bare in HYPHENS or any(c.isalnum() for c in bare)


# --- measures --------------------------------------------------------------------------------


def densities(weights: Floats, causal: bool) -> Floats:
    """Return the share of available keys with a weight above zero, ``(layers, heads, queries)``."""
    return (weights > 0).sum(-1) / _available(weights, causal)


def divergence(weights: Floats, causal: bool) -> Floats:
    """Return the Jensen-Shannon divergence between the heads of a layer (equation 11).

    Entropies are to the base of the number of available keys, so that 1 is the largest value. A
    query with a single key has none and is left out.

    Returns:
        ``(layers, queries with several keys)``.
    """
    available = _available(weights, causal)
    several = available > 1
    distributions = weights[:, :, several]
    base = np.log(available[several])
    return (_entropy(distributions.mean(1)) - _entropy(distributions).mean(1)) / base


def _available(weights: Floats, causal: bool) -> Floats:
    queries, keys = weights.shape[-2:]
    return np.arange(1.0, queries + 1) if causal else np.full(queries, float(keys))


def _entropy(distributions: Floats) -> Floats:
    """Return the Shannon entropy over the last axis."""
    safe = np.where(distributions > 0, distributions, 1.0)
    entropies: Floats = -(distributions * np.log(safe)).sum(-1)
    return entropies


def at_offset(weights: Floats, offset: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the weight at an offset from each query, and whether it is the query's largest.

    Args:
        weights: of a self-attention, ``(layers, heads, tokens, tokens)``.
        offset: -1 is the token before.

    Returns:
        Two arrays ``(layers, heads, queries that have such a token)``.
    """
    rows = np.arange(max(0, -offset), weights.shape[-2] - max(0, offset))
    there = weights[:, :, rows, rows + offset]
    return there, there >= weights[:, :, rows].max(-1)


def inside(weights: Floats, numbers: Sequence[int]) -> Floats:
    """Return the weight inside each token's own cluster, ``(layers, heads, tokens)``."""
    same = np.equal.outer(numbers, numbers)
    within: Floats = (weights * same).sum(-1)
    return within


def merging(weights: Floats, numbers: Sequence[int]) -> Floats:
    """Return how far each head merges each cluster (section 5.2, footnote 3).

    The score is the largest weight that a token of the cluster gives to the other tokens of the
    cluster together; in a cluster of one token, the weight that it gives itself.

    Returns:
        ``(layers, heads, clusters)``.
    """
    own = np.diagonal(weights, axis1=-2, axis2=-1)
    others = inside(weights, numbers) - own
    groups = defaultdict(list)
    for place, number in enumerate(numbers):
        groups[number].append(place)
    scores = [
        (others if len(places) > 1 else own)[..., places].max(-1) for places in groups.values()
    ]
    return np.stack(scores, -1)


def is_question(tokens: Sequence[str], words: frozenset[str]) -> bool | None:
    """Whether a sentence with an interrogative word is a question; None if it has no such word."""
    bare = _bare(tokens)
    if not any(token in words for token in bare[:-1]):
        return None
    return bare[-1] == "?"


def _bare(tokens: Sequence[str]) -> list[str]:
    return [token.strip(JOINER + SPACER).lower() for token in tokens]


def interrogation(weights: Floats, tokens: Sequence[str], words: frozenset[str]) -> Floats:
    """Return the weight that interrogative words give to the last token.

    Args:
        weights: of a self-attention, ``(layers, heads, tokens, tokens)``.
        tokens: of the sentence.
        words: the interrogative words, in small letters.

    Returns:
        ``(layers, heads, interrogative words)``.
    """
    places = [i for i, token in enumerate(_bare(tokens)[:-1]) if token in words]
    return weights[:, :, places, -1]


# --- all of a corpus -------------------------------------------------------------------------


@dataclass
class Means:
    """A running mean of values for each head."""

    total: Any = 0.0
    count: int = 0

    def add(self, values: Floats) -> None:
        """Add values ``(layers, heads, any number)``."""
        self.total = self.total + values.sum(-1)
        self.count += values.shape[-1]

    def mean(self) -> Floats | None:
        """Return ``(layers, heads)``; None if nothing was added."""
        return self.total / self.count if self.count else None


@dataclass
class HeadMeasures:
    """The measures of one kind of attention over a corpus.

    Args:
        kind: encoder, decoder or context.
        alphas: of each head, ``(layers, heads)``.
        words: interrogative words of the queries' language.
    """

    kind: str
    alphas: Floats
    words: frozenset[str] = frozenset()
    density: dict[int, Floats] = field(default_factory=dict)  # by sentence
    attended: Means = field(default_factory=Means)
    diverging: Means = field(default_factory=Means)
    confidence: dict[int, list[Floats]] = field(default_factory=lambda: defaultdict(list))
    largest: dict[int, Means] = field(default_factory=lambda: defaultdict(Means))
    within: Means = field(default_factory=Means)
    within_words: Means = field(default_factory=Means)
    merged: Means = field(default_factory=Means)
    asked: Means = field(default_factory=Means)
    told: Means = field(default_factory=Means)

    def add(self, sentence: Attended) -> None:
        """Add the attention in one sentence."""
        weights, causal = sentence.weights[self.kind], self.kind == "decoder"
        dense = (self.alphas == 1)[:, :, None]  # softmax, even where a weight rounds to zero
        shares = np.where(dense, 1.0, densities(weights, causal))
        self.density[sentence.index] = shares.mean(-1)
        self.attended.add(shares * _available(weights, causal))
        self.diverging.add(divergence(weights, causal))
        if self.kind == "context":
            return
        tokens, _ = sentence.tokens(self.kind)
        for offset in OFFSETS:
            if (causal and offset > 0) or len(tokens) <= abs(offset):
                continue
            there, largest = at_offset(weights, offset)
            self.confidence[offset].append(there.mean(-1))
            self.largest[offset].add(largest.astype(np.float64))
        if causal:
            return
        numbers = clusters(tokens)
        within = inside(weights, numbers)
        self.within.add(within)
        several = [place for place, n in enumerate(numbers) if numbers.count(n) > 1]
        self.within_words.add(within[..., several])
        self.merged.add(merging(weights, numbers))
        question = is_question(tokens, self.words)
        if question is not None:
            (self.asked if question else self.told).add(interrogation(weights, tokens, self.words))

    def summary(self) -> dict[str, Any]:
        """Return the measures by name, with lists ``[layer][head]``, for JSON."""
        density = np.stack([*self.density.values()])
        counts, _ = np.histogram(density, BINS, (0.0, 1.0))
        diverging = self.diverging.mean()
        found: dict[str, Any] = {
            "alpha": self.alphas.tolist(),
            "attended": _list(self.attended.mean()),
            "density": density.mean(0).tolist(),
            "density_histogram": (counts / counts.sum()).tolist(),
            "density_by_layer": density.mean((0, 2)).tolist(),
            "divergence": [] if diverging is None else diverging.tolist(),
        }
        if self.confidence:
            found["positional"] = {
                str(offset): {
                    "share_largest": _list(self.largest[offset].mean()),
                    "mean_weight": np.mean(self.confidence[offset], 0).tolist(),
                    "median_weight": np.median(self.confidence[offset], 0).tolist(),
                }
                for offset in sorted(self.confidence)
            }
        if self.kind == "encoder":
            found |= {
                "inside_cluster": _list(self.within.mean()),
                "inside_cluster_of_several": _list(self.within_words.mean()),
                "merging": _list(self.merged.mean()),
                "interrogation": {
                    "words_in_questions": self.asked.count,
                    "weight_on_question_mark": _list(self.asked.mean()),
                    "words_elsewhere": self.told.count,
                    "weight_on_last_token": _list(self.told.mean()),
                },
            }
        return found


def _list(values: Floats | None) -> Any:
    return None if values is None else values.tolist()


def measure(
    sentences: Iterable[Attended], alphas: Mapping[str, Floats], words: frozenset[str]
) -> dict[str, HeadMeasures]:
    """Return the measures of every kind of attention over a corpus."""
    measures = {kind: HeadMeasures(kind, alphas[kind], words) for kind in KINDS if kind in alphas}
    for sentence in sentences:
        for each in measures.values():
            each.add(sentence)
    return measures


@dataclass(frozen=True)
class Head:
    """One head, counted from 1 as in the paper."""

    kind: str
    layer: int
    head: int
    alpha: float
    score: float

    def __str__(self) -> str:
        return f"{self.kind} {self.layer}.{self.head}"


def ranked(kind: str, scores: Any, alphas: Any) -> list[Head]:
    """Return the heads of a kind, the largest score first."""
    found = [
        Head(kind, layer, head, alphas[layer - 1][head - 1], score)
        for layer, row in enumerate(scores, 1)
        for head, score in enumerate(row, 1)
        if not math.isnan(score)
    ]
    return sorted(found, key=lambda each: -each.score)


def positional_heads(measured: Mapping[str, Any], kind: str, offset: int) -> list[Head]:
    """Return the positional heads of an offset, scored by their median weight there.

    A head is positional if its largest weight is at the offset for at least 90 % of the tokens that
    have one there (Voita et al. 2019).
    """
    found = measured["positional"].get(str(offset))
    if not found:
        return []
    heads = ranked(kind, found["median_weight"], measured["alpha"])
    share = found["share_largest"]
    return [head for head in heads if share[head.layer - 1][head.head - 1] >= POSITIONAL]


def most_varied(measures: HeadMeasures, lengths: Mapping[int, int]) -> tuple[Head, int, int] | None:
    """Return a head, and two sentences of equal length, where its density differs most (Figure 10).

    Args:
        measures: of one kind of attention.
        lengths: of the sentences to choose from.

    Returns:
        The head scored by the difference, the sentence where it is denser, and the other one; None
        if no two sentences have the same length.
    """
    groups = defaultdict(list)
    for index, length in lengths.items():
        groups[length].append(index)
    best: tuple[Head, int, int] | None = None
    for indices in groups.values():
        if len(indices) < 2:
            continue
        density = np.stack([measures.density[index] for index in indices])
        differences = np.ptp(density, axis=0)
        layer, head = (int(n) for n in np.unravel_index(differences.argmax(), differences.shape))
        if best is None or differences[layer, head] > best[0].score:
            column = density[:, layer, head]
            alpha, score = measures.alphas[layer, head], differences[layer, head]
            found = Head(measures.kind, layer + 1, head + 1, float(alpha), float(score))
            best = found, indices[int(column.argmax())], indices[int(column.argmin())]
    return best
