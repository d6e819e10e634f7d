"""Nonzeros of attention and output at each decoding step: counts, tables and pictures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from onmt_entmax.data.batch import Example, group_by_length, make_batch
from onmt_entmax.data.corpus import numericalise
from onmt_entmax.data.reader import read_side_by_side
from onmt_entmax.data.vocabulary import TARGET_SPECIALS
from onmt_entmax.errors import UserError, counted
from onmt_entmax.figures.style import PAGE, plain_numbers
from onmt_entmax.report.tables import markdown_table
from onmt_entmax.search.forced import along_targets
from onmt_entmax.translator import Translator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

QUANTILES = (5, 25, 50, 75, 95)
LAST_POSITION = 30  # later target positions are counted as this one
RANKS = (10, 100, 1000, 10_000)  # upper limits of the frequency classes
SPECIALS = len(TARGET_SPECIALS)
UNKNOWN, END = "unknown", "end"
MODES = {"forced": "along the references", "predicted": "along the models' own outputs"}
SIDES = {"attention": "# attended", "output": "# target tokens"}
WIDE = 50  # axes with larger counts are logarithmic
FEW = 30  # a mean over fewer steps is not drawn


@dataclass
class Counts:
    """Nonzeros at each step of one model, of attention or of output."""

    values: list[int] = field(default_factory=list)
    by_position: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    by_rank: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, values: Sequence[int], targets: Sequence[int], end: int) -> None:
        """Add one sentence.

        Args:
            values: nonzeros at each step.
            targets: target token at each step.
            end: id of the end symbol.
        """
        self.values += values
        for position, (value, token) in enumerate(zip(values, targets, strict=True), 1):
            self.by_position[min(position, LAST_POSITION)].append(value)
            self.by_rank[rank_class(token, end)].append(value)

    def summary(self) -> dict[str, Any]:
        """Return means, quantiles and shares over steps.

        `at_most` is the cumulative distribution: the share of steps by their largest count.
        """
        values = np.array(self.values)
        distinct, counts = np.unique(values, return_counts=True)
        shares = counts.cumsum() / len(values)
        return {
            "steps": len(values),
            "mean": float(values.mean()),
            "share_of_one": float((values == 1).mean()),
            "quantiles": {str(q): float(np.percentile(values, q)) for q in QUANTILES},
            "least": int(values.min()),
            "most": int(values.max()),
            "at_most": dict(zip(map(str, distinct.tolist()), shares.tolist(), strict=True)),
            "by_position": {str(p): _cell(self.by_position[p]) for p in sorted(self.by_position)},
            "by_rank": {
                name: _cell(self.by_rank[name]) for name in sorted(self.by_rank, key=_order)
            },
        }


def _cell(values: Sequence[int]) -> dict[str, float]:
    return {"steps": len(values), "mean": float(np.mean(values))}


def rank_class(token: int, end: int) -> str:
    """Return the frequency class of a token by its vocabulary rank: "1-10", "11-100", ..."""
    if token == end:
        return END
    if token < SPECIALS:
        return UNKNOWN
    rank, low = token - SPECIALS + 1, 1
    for high in RANKS:
        if rank <= high:
            return f"{low}-{high}"
        low = high + 1
    return f"{low}-"


def _order(name: str) -> int:
    """Sort key of classes: frequent ones first, then unknown tokens, then the end."""
    last = {UNKNOWN: 10**9, END: 10**9 + 1}
    return last[name] if name in last else int(name.split("-")[0])


@dataclass(frozen=True)
class Pair:
    """A source and a target as token ids, the target without start and end symbol."""

    source: list[int]
    target: list[int]


@dataclass(frozen=True)
class Steps:
    """Nonzeros at each token of a target, and at its end.

    Attributes:
        targets: token ids, with the end symbol.
        outputs: number of tokens of positive probability.
        attended: number of source positions of positive weight.
    """

    targets: tuple[int, ...]
    outputs: tuple[int, ...]
    attended: tuple[int, ...]


def read(translator: Translator, source: Path, target: Path) -> list[Pair]:
    """Return the sentence pairs of two files as token ids.

    Raises:
        UserError: a file cannot be read or is empty, the files differ in length, or a transform
            drops a line.
    """
    vocabularies, pairs = translator.vocabularies, []
    for number, (src, tgt) in enumerate(read_side_by_side(source, target), 1):
        words = translator.reader.preprocess(" ".join(src), " ".join(tgt))
        if not words[0]:
            raise UserError(f"{source}: nothing is left of line {number} after -transforms")
        ids = numericalise(words, vocabularies, number)
        pairs.append(Pair(list(ids.source), list(ids.target or ())))
    if not pairs:
        raise UserError(f"{source}: there is no sentence in it")
    return pairs


def forced_steps(translator: Translator, pairs: Sequence[Pair], batch_size: int) -> Iterator[Steps]:
    """Yield the nonzeros along each target, ordered by source length.

    Args:
        translator: a model, or an ensemble, with attention.
        pairs: sources and their targets.
        batch_size: sentences of a batch.
    """
    examples = [Example(pair.source, pair.target, i) for i, pair in enumerate(pairs)]
    for group in group_by_length(examples, batch_size, "sents"):
        yield from _steps(translator, group)


@torch.inference_mode()
def _steps(translator: Translator, examples: Sequence[Example]) -> Iterator[Steps]:
    stepper = translator.stepper
    batch = make_batch(examples, translator.vocabularies)
    by_index = {example.index: example for example in examples}
    ordered = [by_index[index] for index in batch.indices]
    targets = [example.target or [] for example in ordered]
    outputs: list[list[int]] = [[] for _ in targets]
    attended: list[list[int]] = [[] for _ in targets]
    for sentences, _, step in along_targets(stepper, batch, targets):
        supports = (step.log_probs > -torch.inf).sum(1).tolist()
        rows = step.attention_rows() or [torch.empty(0)] * len(sentences)
        for i, support, row in zip(sentences, supports, rows, strict=True):
            # Softmax attends to every position, even if a weight rounds to zero.
            dense = translator.dense_attention and len(row)
            length = len(ordered[i].source)
            outputs[i].append(support)
            attended[i].append(length if dense else int(row[:length].count_nonzero()))
    for target, *counts in zip(targets, outputs, attended, strict=True):
        yield Steps((*target, stepper.eos), *map(tuple, counts))


def number(value: float) -> str:
    """Format a count or mean."""
    return f"{value:,.0f}" if isinstance(value, int) or value >= 1000 else f"{value:.2f}"


def table3(figures: Mapping[str, Any]) -> str:
    """Return mean nonzeros a step, as in the paper's Table 3, and the share of steps with one."""
    head = ["model"]
    for mode in ("forced", "predicted"):
        for side in SIDES.values():
            head += [f"{side}, {mode}", "just one"]
    rows = []
    for name, model in figures.items():
        row = [name]
        for mode in MODES:
            for side in SIDES:
                found = model[mode][side]
                row += [number(found["mean"]), f"{found['share_of_one']:.1%}"]
        rows.append(row)
    return markdown_table(head, rows)


def markdown(figures: Mapping[str, Any]) -> str:
    """Return all tables."""
    first = next(iter(figures.values()))
    parts = [
        "# Nonzeros per step",
        f"{counted(first['sentences'], 'sentence')}. *Forced*: along the references; *predicted*: "
        "along the models' own outputs (beam search). Attention counts source positions, output "
        "the tokens of the target vocabulary.",
        table3(figures),
    ]
    for mode, said in MODES.items():
        for side in ("attention", "output"):
            measured = {name: model[mode][side] for name, model in figures.items()}
            parts += [f"## {side.capitalize()}, {said}", *_details(measured)]
    return "\n\n".join(parts) + "\n"


def _details(measured: Mapping[str, Any]) -> list[str]:
    """Return tables of quantiles, and of means by frequency and by position."""
    quantiles = [
        [name, str(m["steps"]), number(m["least"])]
        + [f"{m['quantiles'][str(q)]:,g}" for q in QUANTILES]
        + [number(m["most"])]
        for name, m in measured.items()
    ]
    tables = [
        markdown_table(
            ["model", "steps", "least", *(f"{q} %" for q in QUANTILES), "most"], quantiles
        )
    ]
    for key, said in (("by_rank", "rank of the token"), ("by_position", "position")):
        cells = dict.fromkeys(cell for m in measured.values() for cell in m[key])
        rows = [
            [cell if cell != str(LAST_POSITION) or key == "by_rank" else f"{cell} and later"]
            + [number(m[key][cell]["mean"]) if cell in m[key] else "" for m in measured.values()]
            for cell in cells
        ]
        tables.append(markdown_table([said, *measured], rows))
    return tables


def draw(figures: Mapping[str, Any]) -> Figure:
    """Draw forced decoding: distribution, means by position and by frequency.

    The upper row is attention, the lower row output.
    """
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 3, figsize=(PAGE, 3.7))
    for line, side in zip(axes, ("attention", "output"), strict=True):
        measured = {name: model["forced"][side] for name, model in figures.items()}
        _distribution(line[0], measured)
        _by_position(line[1], measured)
        _by_rank(line[2], measured)
        noun = {"attention": "attended positions", "output": "possible tokens"}[side]
        line[0].set_xlabel(noun)
        line[0].set_ylabel("share of steps with\nat most so many")
        line[1].set_ylabel(f"{noun},\nmean")
        wide = any(m["most"] > WIDE for m in measured.values())
        if wide:
            line[0].set_xscale("log")
        for axis in line[1:]:
            axis.set_yscale("log" if wide else "linear")
            axis.set_ylim(bottom=0.9 if wide else 0)
            axis.grid(axis="y")
        for axis in line:
            plain_numbers(axis)
    axes[1, 1].set_xlabel("position in the target")
    axes[1, 2].set_xlabel("frequency rank of the target token")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 5))
    return figure


def _distribution(axis: Axes, measured: Mapping[str, Any]) -> None:
    most = max(m["most"] for m in measured.values())
    for name, m in measured.items():
        points = [(int(count), share) for count, share in m["at_most"].items()]
        counts, shares = [1, *(c for c, _ in points), most], [0.0, *(s for _, s in points), 1.0]
        if points[0][0] == 1:
            counts, shares = counts[1:], shares[1:]
        axis.step(counts, shares, where="post", label=name)
    axis.set_ylim(0, 1.03)


def _by_position(axis: Axes, measured: Mapping[str, Any]) -> None:
    for m in measured.values():
        found = [
            (int(position), cell["mean"])
            for position, cell in m["by_position"].items()
            if cell["steps"] >= FEW and int(position) < LAST_POSITION
        ]
        axis.plot([p for p, _ in found], [mean for _, mean in found])


def _by_rank(axis: Axes, measured: Mapping[str, Any]) -> None:
    names = list(
        dict.fromkeys(
            name
            for m in measured.values()
            for name, cell in m["by_rank"].items()
            if cell["steps"] >= FEW
        )
    )
    for m in measured.values():
        places = [i for i, name in enumerate(names) if name in m["by_rank"]]
        means = [m["by_rank"][names[i]]["mean"] for i in places]
        axis.plot(places, means, linestyle="", marker="o")
    labels = [name.replace("-", "–") for name in names]
    axis.set_xticks(range(len(names)), labels, rotation=30, ha="right", rotation_mode="anchor")
    axis.set_xlim(-0.5, max(len(names), 1) - 0.5)
