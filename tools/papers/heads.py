"""Analyse the attention heads of Transformers (Correia, Niculae and Martins 2019, section 5).

    python -m tools.papers.heads run/softmax run/entmax15 run/learned \\
        --names softmax 1.5-entmax learned --language de --out run/heads \\
        --source run/mt/multi30k/val.de --target run/mt/multi30k/val.en

The models are forced along the targets. It prints a table, and writes to FOLDER

    heads.json, heads.md   all measures of all heads; the tables
    alphas                 histograms of the heads' alphas (Figures 3, 11)
    trajectories           learned alphas over training, of the last run folder that has some
                           (Figure 2)
    densities              share of the tokens that get attention (Figures 4, 12)
    layers                 the same by layer, a line for each head (Figures 5, 14)
    divergence             Jensen-Shannon divergence between heads (Figures 6, 13)
    positional             the surest head that attends to the token before (Figure 7)
    merging                the head that merges subwords most (Figure 8)
    interrogation          the head that attends most to question marks (Figure 9)
    contrast               one head on two sentences of equal length (Figure 10)

pictures as PDF and PNG. The definition of each measure stands in heads.md.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.errors import UserError
from onmt_entmax.files import write_files
from onmt_entmax.nn.transformer import KINDS, attentions
from onmt_entmax.rules import whole
from onmt_entmax.search import SearchTask
from onmt_entmax.translator import Translator
from tools.papers.figures import compare_arguments, heat_map, heat_scale, read_metrics
from tools.papers.markdown import markdown_table
from tools.papers.pictures import (
    INK,
    JOINER,
    PAGE,
    Figure,
    legend_above,
    names_of,
    prepare,
    pyplot,
    write,
)
from tools.papers.sparsity import Pair, read_pairs

Floats = NDArray[np.float64]

OFFSETS = (-2, -1, 0, 1, 2)
POSITIONAL = 0.9  # share of the tokens at which a positional head's largest weight is (Voita 2019)
BINS = 20  # of a histogram of densities
READABLE = range(7, 15)  # source lengths of example sentences
INTERROGATIVES = {
    "de": "wer wen wem wessen was wann wo woher wohin warum wieso weshalb wie welche welcher "
    "welches welchen welchem",
    "en": "who whom whose what when where why how which",
}
SPACER, CONTINUED = "▁", "@@"  # subword marks of SentencePiece and subword-nmt
HYPHENS = ("-", "‐", "‑", "@-@")
DEFINITIONS = {
    "attended": "number of keys with a weight above zero, mean over the queries",
    "density": "share of the available keys with a weight above zero, mean over the queries; "
    "softmax is dense, even where a weight rounds to zero",
    "divergence": "Jensen-Shannon divergence between the heads of a layer, to the base of the "
    "number of keys (equation 11), mean over the queries with several keys",
    "positional head": "its largest weight is at the offset for at least 90 % of the tokens "
    "(Voita et al. 2019)",
    "confidence": "weight at the offset: mean over the tokens of a sentence, median over sentences",
    "cluster": "a word of several subwords, with its hyphens; any other token is its own cluster",
    "merging": "largest weight that a token gives to the rest of its cluster, in a cluster of one "
    "token to itself; mean over clusters (footnote 3)",
    "inside": "weight inside the current token's own cluster, mean over the tokens",
    "interrogation": "weight that interrogative words give to a final question mark",
    "elsewhere": "weight that they give to the last token of a sentence without one",
}
TITLES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "context": "context attention",
}

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
    examples = [Example(encode(s), target, i) for i, (s, target) in enumerate(pairs)]
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

    def is_part(token: str) -> bool:
        bare = token.strip(JOINER + SPACER).removesuffix(CONTINUED)
        return bare in HYPHENS or any(c.isalnum() for c in bare)

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
        numbers.append(numbers[-1] if joined and is_part(before) and is_part(token) else place)
    return numbers


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

    def entropy(distributions: Floats) -> Floats:
        safe = np.where(distributions > 0, distributions, 1.0)
        entropies: Floats = -(distributions * np.log(safe)).sum(-1)
        return entropies

    available = available_keys(weights, causal)
    distributions = weights[:, :, available > 1]
    base = np.log(available[available > 1])
    return (entropy(distributions.mean(1)) - entropy(distributions).mean(1)) / base


def at_offset(weights: Floats, offset: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the weight at an offset from each query (-1: the token before), and whether it is the
    query's largest; `(layers, heads, queries that have such a token)`."""
    rows = np.arange(max(0, -offset), weights.shape[-2] - max(0, offset))
    there = weights[:, :, rows, rows + offset]
    return there, there >= weights[:, :, rows].max(-1)


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
        places = [place for place, each in enumerate(numbers) if each == number]
        scores.append((others if len(places) > 1 else own)[..., places].max(-1))
    return np.stack(scores, -1)


def interrogation(tokens: Sequence[str], words: Iterable[str]) -> tuple[list[int], bool]:
    """Return the places of interrogative words, and whether a question mark ends the sentence."""
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
                there, largest = at_offset(weights, offset)
                self._confidence[offset].append(there.mean(-1))
                self._count(f"largest {offset}", largest)
        if causal:
            return
        numbers = clusters(tokens)
        within = inside(weights, numbers)
        several = [place for place, n in enumerate(numbers) if numbers.count(n) > 1]
        self._count("inside", within)
        self._count("inside of several", within[..., several])
        self._count("merging", merging(weights, numbers))
        places, question = interrogation(tokens, self.words)
        if places:
            self._count("asked" if question else "told", weights[:, :, places, -1])

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
    def place(self) -> tuple[int, int]:
        """Its indices."""
        return self.layer - 1, self.head - 1


def ranked(scores: Any, alphas: Any) -> list[Head]:
    """Return heads, the largest score first."""
    heads = [
        Head(layer, head, alphas[layer - 1][head - 1], score)
        for layer, row in enumerate(scores, 1)
        for head, score in enumerate(row, 1)
    ]
    return sorted(heads, key=lambda each: -each.score)


def positional_heads(measured: Mapping[str, Any], offset: int) -> list[Head]:
    """Return the heads whose largest weight is at an offset for 90 % of the tokens that have one
    there (Voita et al. 2019), by their median weight there."""
    measures = measured["positional"].get(str(offset))
    heads = ranked(measures["median_weight"], measured["alpha"]) if measures else []
    return [h for h in heads if np.array(measures["share_largest"])[h.place] >= POSITIONAL]


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


# --- one model -------------------------------------------------------------------------------


class Shown(NamedTuple):
    """A head's attention in one sentence, with a title."""

    title: str
    weights: Floats
    tokens: Sequence[str]


def analyse(
    options: argparse.Namespace, folder: Path, name: str, words: frozenset[str]
) -> tuple[dict[str, Any], dict[str, list[Shown]]]:
    """Return the measures of one model, and the examples to draw by picture.

    Raises:
        UserError: a file cannot be read, or the model is no Transformer with such attention.
    """
    loaded = load(folder)
    alphas = head_alphas(loaded.model)
    if "decoder" not in alphas:
        raise UserError(f"{folder}: is no Transformer with heads in all attention")
    translator = Translator([loaded], SearchTask(), options.transforms)
    pairs = read_pairs(translator, options.source, options.target, options.limit)
    if all(len(source) == 1 for source, _ in pairs):
        raise UserError(f"{options.source}: no sentence has two tokens, so no head has a choice")
    measures = {kind: Measures(kind, alphas[kind], words) for kind in KINDS}
    for index, weights in attend(loaded, pairs, options.batch_size):
        source, target = pairs[index]
        target_tokens = loaded.vocabularies.target.decode([loaded.vocabularies.target.bos, *target])
        for kind, each in measures.items():
            each.add(index, weights[kind], source if kind == "encoder" else target_tokens)
    found: dict[str, Any] = {"model": str(folder), "sentences": len(pairs)}
    found |= {kind: each.summary() for kind, each in measures.items()}

    def shown(head: Head, index: int, said: str) -> Shown:
        ((_, weights),) = attend(loaded, [pairs[index]])
        title = f"{name}: encoder {head.layer}.{head.head}, alpha {head.alpha:.2f}\n{said}"
        return Shown(title, weights["encoder"][head.place], pairs[index][0])

    sources = {i: source for i, (source, _) in enumerate(pairs)}
    sources = {i: source for i, source in sources.items() if len(source) in READABLE} or sources
    encoder = found["encoder"]

    def in_several(index: int) -> int:
        numbers = clusters(sources[index])
        return sum(numbers.count(number) > 1 for number in numbers)

    richest = max(sources, key=lambda i: (in_several(i), -i))
    merges = ranked(encoder["merging"], encoder["alpha"])[0]
    before = ranked(encoder["positional"]["-1"]["median_weight"], encoder["alpha"])[0]
    examples = {
        "merging": [shown(merges, richest, f"score {merges.score:.1%}")],
        "positional": [shown(before, richest, f"confidence {before.score:.1%}")],
    }
    asked = encoder["interrogation"]["weight_on_question_mark"]
    if asked is not None:
        head = ranked(asked, encoder["alpha"])[0]
        kinds = {i: interrogation(source, words) for i, source in sources.items()}
        for question, said in ((True, "a question"), (False, "no question")):
            for index in [i for i, (p, q) in kinds.items() if p and q is question][:1]:
                examples.setdefault("interrogation", []).append(shown(head, index, said))
    varied = most_varied(measures["encoder"], {i: len(source) for i, source in sources.items()})
    if varied is not None:
        head, *both = varied
        density = measures["encoder"].density
        examples["contrast"] = [
            shown(head, index, f"density {density[index][head.place]:.0%}") for index in both
        ]
    return found, examples


# --- tables ----------------------------------------------------------------------------------


def overview(models: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of alphas, attended keys, densities and divergences."""
    head, rows = ["model"], []
    for kind in KINDS:
        head += [f"{kind}: alpha", "attended", "density", "divergence"]
    for name, model in models.items():
        row = [name]
        for each in (model[kind] for kind in KINDS):
            low, high = np.min(each["alpha"]), np.max(each["alpha"])
            row += [f"{low:.3g}" if low == high else f"{low:.2f} to {high:.2f}"]
            row += [f"{np.mean(each['attended']):.2f}", f"{np.mean(each['density']):.1%}"]
            row.append(f"{np.mean(each['divergence']):.3f}")
        rows.append(row)
    return markdown_table(head, rows)


def specialised(models: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of positional heads, and one of the heads that merge or question most."""

    def text(head: Head) -> str:
        return f"{head.layer}.{head.head} (alpha {head.alpha:.2f}): {head.score:.1%}"

    positional, largest = [], []
    for name, model in models.items():
        encoder, elsewhere = model["encoder"], "none"
        for offset in OFFSETS:
            if heads := positional_heads(encoder, offset):
                listed = ", ".join(map(text, heads))
                positional.append([name, f"{offset:+d}" if offset else "0", listed])
        asked = encoder["interrogation"]
        scores = encoder["merging"], encoder["inside_cluster"], asked["weight_on_question_mark"]
        best = [ranked(each, encoder["alpha"])[0] if each else None for each in scores]
        if best[2] is not None and asked["weight_on_last_token"] is not None:
            elsewhere = f"{np.array(asked['weight_on_last_token'])[best[2].place]:.1%}"
        cells = [text(head) if head else "none" for head in best]
        largest.append([name, *cells, elsewhere, str(asked["words_in_questions"])])
    head = ["model", "merging", "inside", "interrogation", "elsewhere", "words in questions"]
    return "\n\n".join(
        [
            "Positional heads of the encoder, with alpha and confidence:",
            markdown_table(["model", "offset", "heads"], positional) if positional else "none",
            "Heads of the encoder with the largest value:",
            markdown_table(head, largest),
        ]
    )


def by_layer(models: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of density and divergence by layer."""
    rows = [
        [name, kind, str(layer), f"{density:.1%}", f"{divergence:.3f}"]
        for name, model in models.items()
        for kind in KINDS
        for layer, (density, divergence) in enumerate(
            zip(model[kind]["density_by_layer"], model[kind]["divergence"], strict=True), 1
        )
    ]
    return markdown_table(["model", "attention", "layer", "density", "divergence"], rows)


# --- pictures --------------------------------------------------------------------------------


def panels(height: float, rows: int = 1) -> tuple[Figure, Any]:
    """Return a figure with a panel `(rows, kinds)` for each kind of attention."""
    figure, axes = pyplot.subplots(
        rows, len(KINDS), figsize=(PAGE, height * rows), sharey="row", squeeze=False
    )
    for axis, kind in zip(axes[0], KINDS, strict=True):
        axis.set_title(TITLES[kind])
    for axis in axes.flat:
        axis.grid(axis="y")
    return figure, axes


def shade(place: int, count: int) -> Any:
    """Return a colour of a scale from blue to yellow."""
    return pyplot.get_cmap("viridis")(place / max(count - 1, 1) * 0.92) if count > 1 else INK


def draw_trajectories(steps: Sequence[int], alphas: Mapping[str, Floats]) -> Figure:
    """Draw learned alphas `(steps, layers, heads)` by kind over training (Figure 2)."""
    figure, (axes,) = panels(1.9)
    for axis, kind in zip(axes, KINDS, strict=True):
        axis.set_ylim(1, 2)
        axis.set_xlabel("training steps")
        layers = alphas[kind].shape[1] if kind in alphas else 0
        for layer in range(layers):
            colour = shade(layer, layers)
            lines = axis.plot(steps, alphas[kind][:, layer], color=colour, linewidth=0.8)
            lines[0].set_label(f"layer {layer + 1}")
    axes[0].set_ylabel("alpha")
    legend_above(figure, axes[KINDS.index(next(iter(alphas)))])
    return figure


def draw_comparison(models: Mapping[str, Mapping[str, Any]], what: str) -> Figure:
    """Draw all models in a panel for each kind of attention.

    Args:
        models: measures by name.
        what: `alphas` (histograms over heads, Figures 3 and 11), `densities` (over heads and
            sentences, Figures 4 and 12) or `divergence` (by layer, Figures 6 and 13).
    """
    figure, (axes,) = panels(1.8)
    for axis, kind in zip(axes, KINDS, strict=True):
        for name, model in models.items():
            each = model[kind]
            if what == "alphas":
                alphas = np.ravel(each["alpha"]).clip(1, 2)
                axis.hist(alphas, np.linspace(1, 2, 21), alpha=0.6, label=name)
                axis.yaxis.get_major_locator().set_params(integer=True)
            elif what == "densities":
                axis.stairs(each["density_histogram"], np.linspace(0, 1, BINS + 1), label=name)
            else:
                layers = range(1, len(each["divergence"]) + 1)
                axis.plot(layers, each["divergence"], marker="o", label=name)
                axis.set_xticks(layers)
        limits = {"alphas": (1, 2), "densities": (0, 1.01)}
        axis.set(xlabel={"alphas": "alpha", "densities": "density", "divergence": "layer"}[what])
        axis.set_xlim(limits.get(what))
    axes[0].set_ylim(bottom=0)  # of all panels, which share it
    labels = {"alphas": "heads", "densities": "share of heads and sentences"}
    axes[0].set_ylabel(labels.get(what, "divergence of heads"))
    legend_above(figure, axes[0])
    return figure


def draw_layers(models: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw the density of the heads of each layer, sorted (Figures 5 and 14); a row a model."""
    figure, grid = panels(1.35, len(models))
    for axes, (name, model) in zip(grid, models.items(), strict=True):
        for axis, kind in zip(axes, KINDS, strict=True):
            density = np.sort(np.array(model[kind]["density"]), axis=1)
            layers, heads = density.shape
            for head in range(heads):
                colour = shade(head, heads)
                axis.plot(range(1, layers + 1), density[:, head], color=colour, marker="o")
            axis.set_ylim(0, 1.03)
            axis.set_xticks(range(1, layers + 1))
        axes[0].set_ylabel(f"{name}\ndensity")
    for axis in grid[-1]:
        axis.set_xlabel("layer")
    return figure


def draw_heads(shown: Sequence[Shown], across: int) -> Figure:
    """Draw attention of heads, at most `across` side by side (Figures 7 to 10)."""
    across = min(len(shown), across)
    rows = -(-len(shown) // across)
    longest = max(len(each.tokens) for each in shown)
    cell = min(0.17, (PAGE / across - 0.75) / longest)
    size = (PAGE, (cell * longest + 0.95) * rows)
    figure, axes = pyplot.subplots(rows, across, figsize=size, squeeze=False)
    for axis, each in zip(axes.flat, shown, strict=False):
        image = heat_map(axis, each.weights, each.tokens, each.tokens, cell)
        axis.set_title(each.title, fontsize=7)
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    heat_scale(figure, image, axes)
    return figure


def trajectories(folder: Path) -> tuple[list[int], dict[str, Any]] | None:
    """Return steps and learned alphas by kind from a run folder; None if it has none."""
    runs = [run for run in (folder, folder.parent) if (run / "metrics.jsonl").is_file()]
    rows = [row for run in runs[:1] for row in read_metrics(run) if row["kind"] == "alpha"]
    kinds = [kind for kind in KINDS if rows and kind in rows[0]]
    alphas = {kind: np.array([row[kind] for row in rows]) for kind in kinds}
    return ([row["step"] for row in rows], alphas) if rows else None


# --- the command -----------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Print and write the analyses; return the exit status."""
    parser = argument_parser(__doc__)
    add: Any = parser.add_argument
    compare_arguments(add)
    add("--out", type=Path, required=True, metavar="FOLDER")
    add("--batch_size", type=whole(1, 10**7), default=32, metavar="N")
    add("--language", choices=sorted(INTERROGATIVES), help="of the source: its question words")
    add("--interrogatives", nargs="+", metavar="WORD", help="question words of other languages")
    options = parser.parse_args(arguments)
    names, out = names_of(options), options.out
    known = options.interrogatives or INTERROGATIVES.get(options.language or "", "").split()
    words = frozenset(word.lower() for word in known)
    models: dict[str, Any] = {}
    examples: dict[str, list[Shown]] = defaultdict(list)
    for name, folder in zip(names, options.models, strict=True):
        models[name], drawn = analyse(options, folder, name, words)
        for picture, some in drawn.items():
            examples[picture] += some
    print(overview(models), specialised(models), sep="\n\n")
    parts = ["# Attention heads", "Layers and heads are counted from 1."]
    parts.append(markdown_table(["measure", "definition"], DEFINITIONS.items()))
    parts += [overview(models), specialised(models), by_layer(models)]
    texts = {"heads.json": json.dumps(models, indent=1), "heads.md": "\n\n".join(parts)}
    write_files({out / name: f"{text}\n" for name, text in texts.items()})
    prepare([*names, *(token for some in examples.values() for e in some for token in e.tokens)])
    figures = {
        what: draw_comparison(models, what) for what in ("alphas", "densities", "divergence")
    }
    figures["layers"] = draw_layers(models)
    curves = [curve for curve in map(trajectories, options.models) if curve]
    if curves:
        figures["trajectories"] = draw_trajectories(*curves[-1])
    for picture, some in examples.items():
        figures[picture] = draw_heads(some, 2 if picture in ("interrogation", "contrast") else 3)
    pictures = [write(figure, out / name) for name, figure in figures.items()]
    print(f"\nwritten: {', '.join([*(str(out / name) for name in texts), *pictures])}")
    return 0


if __name__ == "__main__":
    run_script(main)
