"""Measures of attention heads, of one sentence and over a corpus; heads.py defines them in words.

Weights of one kind of attention are `(layers, heads, queries, keys)`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.nn.transformer import attentions
from tools.papers.pictures import JOINER
from tools.papers.sparsity import Pair

Floats = NDArray[np.float64]

OFFSETS = (-2, -1, 0, 1, 2)
POSITIONAL = 0.9  # share of the tokens at which a positional head's largest weight is (Voita 2019)
BINS = 20  # of a histogram of densities
SPACER, CONTINUED = "▁", "@@"  # subword marks of SentencePiece and subword-nmt
HYPHENS = ("-", "‐", "‑", "@-@")

# --- attention -------------------------------------------------------------------------------


@torch.inference_mode()
def attend(
    loaded: LoadedModel, pairs: Sequence[Pair], batch_size: int = 32
) -> Iterator[tuple[int, dict[str, Floats]]]:
    """Yield the weights of all heads along given targets, ordered by source length.

    Args:
        loaded: a Transformer.
        pairs: source tokens and target ids.
        batch_size: sentences of a batch.

    Yields:
        The index of a pair, and by kind of attention its weights `(layers, heads, queries, keys)`.
        A decoder's self-attention has zeros above its diagonal.
    """
    modules, kept = attentions(loaded.model), {}
    encode = loaded.vocabularies.source.encode
    examples = [
        Example(encode(source), target, index) for index, (source, target) in enumerate(pairs)
    ]
    examples.sort(key=lambda example: len(example.source))

    def keep(module: Any, _: Any, output: Any) -> None:
        kept[module] = output[1]

    with ExitStack() as stack:
        for module in (module for layers in modules.values() for module in layers):
            stack.callback(setattr, module, "returns_weights", module.returns_weights)
            stack.callback(module.register_forward_hook(keep).remove)
            module.returns_weights = True
        for first in range(0, len(examples), batch_size):
            batch = make_batch(examples[first : first + batch_size], loaded.vocabularies)
            loaded.model.hidden_states(batch)
            for row, index in enumerate(batch.indices):
                source, target = len(pairs[index][0]), len(pairs[index][1]) + 1
                sizes = {"encoder": (source, source), "decoder": (target, target)}
                sizes["context"] = (target, source)
                weights = {}
                for kind, layers in modules.items():
                    queries, keys = sizes[kind]
                    stacked = torch.stack([kept[layer][row] for layer in layers])
                    weights[kind] = stacked[..., :queries, :keys].double().numpy()
                yield index, weights


def head_alphas(model: Any) -> dict[str, Floats]:
    """Return the alpha of each head by kind, `(layers, heads)`; of fixed alphas too."""
    alphas = {}
    for kind, layers in attentions(model).items():
        rows = [torch.as_tensor(layer.alphas()).expand(layer.head_count) for layer in layers]
        alphas[kind] = torch.stack(rows).detach().double().numpy()
    return alphas


def clusters(tokens: Sequence[str]) -> list[int]:
    """Return for each token the number of its subword cluster.

    A cluster is a word of several subwords, with its hyphens; any other token is its own cluster.
    Punctuation that a tokeniser split off is no part of the word it stood beside.
    """
    spaced = any(token.startswith(SPACER) for token in tokens)
    numbers = list(range(len(tokens)))
    for position in range(1, len(tokens)):
        before, token = tokens[position - 1], tokens[position]
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
    """

    def __init__(self, kind: str, alphas: Floats, words: Iterable[str] = ()) -> None:
        self.kind, self.alphas, self.words = kind, alphas, words
        self.density: dict[int, Floats] = {}  # by sentence
        self._confidence: dict[int, list[Floats]] = defaultdict(list)
        self._totals: dict[str, Any] = defaultdict(float)
        self._counts: dict[str, int] = defaultdict(int)

    def _count(self, name: str, values: Any) -> None:
        """Add values `(layers, heads, any number)`, or without heads, to a mean."""
        self._totals[name] += values.sum(-1)
        self._counts[name] += values.shape[-1]

    def add(self, index: int, weights: Floats, tokens: Sequence[str]) -> None:
        """Add a sentence: its weights, and the tokens of the queries."""
        causal = self.kind == "decoder"
        available = available_keys(weights, causal)
        dense = (self.alphas == 1)[:, :, None]  # softmax, even where a weight rounds to zero
        shares = np.where(dense, 1.0, (weights > 0).sum(-1) / available)
        self.density[index] = shares.mean(-1)
        self._count("attended", shares * available)
        self._count("divergence", divergence(weights, causal))
        if self.kind == "context":
            return
        for offset in OFFSETS:
            if not (causal and offset > 0) and len(tokens) > abs(offset):
                at, largest = at_offset(weights, offset)
                self._confidence[offset].append(at.mean(-1))
                self._count(f"largest {offset}", largest)
        if causal:
            return
        numbers = clusters(tokens)
        within = inside(weights, numbers)
        divided = [position for position, number in enumerate(numbers) if numbers.count(number) > 1]
        self._count("inside", within)
        self._count("inside of several", within[..., divided])
        self._count("merging", merging(weights, numbers))
        positions, is_question = interrogation(tokens, self.words)
        if positions:
            self._count("asked" if is_question else "told", weights[:, :, positions, -1])

    def summary(self) -> dict[str, Any]:
        """Return the measures by name, with lists `[layer][head]`, for JSON."""

        def mean(name: str) -> Any:
            count = self._counts.get(name)
            return (self._totals[name] / count).tolist() if count else None

        density = np.stack([*self.density.values()])
        counts, _ = np.histogram(density, BINS, (0.0, 1.0))
        measures: dict[str, Any] = {
            "alpha": self.alphas.tolist(),
            "attended": mean("attended"),
            "density": density.mean(0).tolist(),
            "density_histogram": (counts / counts.sum()).tolist(),
            "density_by_layer": density.mean((0, 2)).tolist(),
            "divergence": mean("divergence") or [],
        }
        if self._confidence:
            measures["positional"] = {
                str(offset): {
                    "share_largest": mean(f"largest {offset}"),
                    "mean_weight": np.mean(self._confidence[offset], 0).tolist(),
                    "median_weight": np.median(self._confidence[offset], 0).tolist(),
                }
                for offset in sorted(self._confidence)
            }
        if self.kind == "encoder":
            measures |= {
                "inside_cluster": mean("inside"),
                "inside_cluster_of_several": mean("inside of several"),
                "merging": mean("merging"),
                "interrogation": {
                    "words_in_questions": self._counts["asked"],
                    "weight_on_question_mark": mean("asked"),
                    "words_elsewhere": self._counts["told"],
                    "weight_on_last_token": mean("told"),
                },
            }
        return measures


class Head(NamedTuple):
    """A head of the encoder, counted from 1 as in the paper."""

    layer: int
    head: int
    alpha: float
    score: float

    @property
    def indices(self) -> tuple[int, int]:
        """Layer and head, counted from 0."""
        return self.layer - 1, self.head - 1


def ranked(scores: Any, alphas: Any) -> list[Head]:
    """Return heads, the largest score first."""
    heads = [
        Head(layer, head, alphas[layer - 1][head - 1], score)
        for layer, row in enumerate(scores, 1)
        for head, score in enumerate(row, 1)
    ]
    return sorted(heads, key=lambda head: -head.score)


def positional_heads(measured: Mapping[str, Any], offset: int) -> list[Head]:
    """Return the heads that are positional at an offset, by their median weight there.

    Their largest weight is there for 90 % of the tokens that have one there (Voita et al. 2019).
    """
    measures = measured["positional"].get(str(offset))
    if measures is None:
        return []
    shares = np.array(measures["share_largest"])
    heads = ranked(measures["median_weight"], measured["alpha"])
    return [head for head in heads if shares[head.indices] >= POSITIONAL]


def most_varied(measures: Measures, lengths: Mapping[int, int]) -> tuple[Head, int, int] | None:
    """Return a head, and two sentences of equal length, where its density differs most (Figure 10).

    Args:
        measures: of the encoder.
        lengths: of the sentences to choose from.

    Returns:
        The head scored by the difference, the sentence where it is denser, and the other one; None
        if no density differs.
    """
    groups, best = defaultdict(list), None
    for index, length in lengths.items():
        groups[length].append(index)
    for indices in groups.values():
        density = np.stack([measures.density[index] for index in indices])
        differences = np.ptp(density, axis=0)
        place = np.unravel_index(differences.argmax(), differences.shape)
        if differences[place] > (best[0].score if best else 0):
            column = density[:, place[0], place[1]]
            layer, number = int(place[0]) + 1, int(place[1]) + 1
            head = Head(layer, number, float(measures.alphas[place]), float(differences[place]))
            best = head, indices[int(column.argmax())], indices[int(column.argmin())]
    return best
