"""Nonzeros of attention and output at each decoding step, for `tools.papers.figures sparsity`.

After Peters, Niculae and Martins (2019), Table 3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from onmt_entmax.data.batch import make_batch
from onmt_entmax.data.vocabulary import TARGET_SPECIALS
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_aligned
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.search.forced import along_targets
from onmt_entmax.translator import Translator
from tools.papers.markdown import markdown_table
from tools.papers.pictures import PAGE, Axes, Figure, legend_above, plain_numbers, pyplot

QUANTILES = (5, 25, 50, 75, 95)
LAST_POSITION = 30  # later target positions are counted as this one
RANKS = (10, 100, 1000, 10_000)  # upper limits of the frequency classes
MODES = {"forced": "along the references", "predicted": "along the models' own outputs"}
SIDES = {"attention": "attended positions", "output": "possible tokens"}
WIDE = 50  # axes with larger counts are logarithmic
FEW = 30  # a mean over fewer steps is not drawn

Pair = tuple[list[str], list[int]]  # source tokens; target ids without start and end symbol


def read_pairs(
    translator: Translator, source: Path, target: Path, limit: int | None = None
) -> list[Pair]:
    """Return the first sentence pairs of two files.

    Raises:
        UserError: a file cannot be read or is empty, they differ in length, or a line is blank.
    """
    reader, pairs = translator.reader, []
    for number, texts in enumerate(zip(*read_aligned(source, target), strict=True), 1):
        words, target_words = reader.preprocess(*texts)
        if not words:
            raise UserError(f"{source}: line {number} is blank, or nothing is left of it")
        pairs.append((words, translator.vocabularies.target.encode(target_words)))
    if not pairs:
        raise UserError(f"{source}: there is no sentence in it")
    return pairs[:limit]


def rank_class(token: int, end: int) -> str:
    """Return the frequency class of a token by its vocabulary rank: "1-10", "11-100", ..."""
    if token == end:
        return "end"
    rank = token - len(TARGET_SPECIALS) + 1
    if rank < 1:
        return "unknown"
    high = next((high for high in RANKS if rank <= high), "")
    low = max((below + 1 for below in RANKS if below < rank), default=1)
    return f"{low}-{high}"


class ForcedStep(NamedTuple):
    """A step of decoding along a target.

    Attributes:
        position: in the target, from 1.
        token: id of the target's token there.
        attended: source positions with attention.
        possible: tokens of positive probability.
    """

    position: int
    token: int
    attended: int
    possible: int


@torch.inference_mode()
def steps_of(
    translator: Translator, pairs: Sequence[Pair], batch_size: int
) -> Iterator[ForcedStep]:
    """Yield each step of decoding along the targets of pairs."""
    stepper = translator.stepper
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][0]))
    for first in range(0, len(order), batch_size):
        chosen = [pairs[i] for i in order[first : first + batch_size]]
        sources = enumerate(words for words, _ in chosen)
        examples = [translator.reader.encode(words, i).example for i, words in sources]
        batch = make_batch(examples, translator.vocabularies)
        chosen = [chosen[i] for i in batch.indices]
        walk = along_targets(stepper, batch, [target for _, target in chosen])
        for position, (sentences, tokens, step) in enumerate(walk, 1):
            supports = (step.log_probs > -torch.inf).sum(1).tolist()
            rows = step.attention_rows() or [torch.empty(0)] * len(sentences)
            for i, token, support, row in zip(sentences, tokens, supports, rows, strict=True):
                length = len(chosen[i][0])
                # Softmax attends to every position, even if a weight rounds to zero.
                dense = translator.dense_attention and len(row)
                attended = length if dense else int(row[:length].count_nonzero())
                yield ForcedStep(position, token, attended, support)


def summarise(steps: Sequence[tuple[int, int, int]], end: int) -> dict[str, Any]:
    """Return means, quantiles and shares over steps of (position, token, count).

    `at_most` is the cumulative distribution: the share of steps by their largest count.
    """
    values = np.array([count for _, _, count in steps])
    distinct, counts = np.unique(values, return_counts=True)
    positions, ranks = defaultdict(list), defaultdict(list)
    for position, token, count in steps:
        positions[min(position, LAST_POSITION)].append(count)
        ranks[rank_class(token, end)].append(count)
    last = {"unknown": 10**9, "end": 10**9 + 1}  # behind all ranks
    ordered = sorted(ranks, key=lambda name: last.get(name) or int(name.split("-")[0]))
    return {
        "steps": len(values),
        "mean": float(values.mean()),
        "share_of_one": float((values == 1).mean()),
        "quantiles": {str(q): float(np.percentile(values, q)) for q in QUANTILES},
        "most": int(values.max()),
        "at_most": dict(
            zip(map(str, distinct), (counts.cumsum() / len(values)).tolist(), strict=True)
        ),
        "by_position": {
            str(position): _mean_of(positions[position]) for position in sorted(positions)
        },
        "by_rank": {name: _mean_of(ranks[name]) for name in ordered},
    }


def _mean_of(counts: Sequence[int]) -> dict[str, float]:
    """Return how many steps there are, and their mean."""
    return {"steps": len(counts), "mean": float(np.mean(counts))}


def measure(
    folder: Path,
    source: Path,
    target: Path,
    transforms: Sequence[str] | None = None,
    limit: int | None = None,
    beam_size: int = 5,
    batch_size: int = 64,
) -> dict[str, Any]:
    """Return the figures of one model: by mode, then by attention and output.

    Raises:
        UserError: something cannot be read, or no output finished.
    """
    task = SearchTask(SearchConfig(beam_size))
    translator = Translator.from_folders([folder], task, transforms=transforms, attention=True)
    pairs = read_pairs(translator, source, target, limit)
    lines = read_aligned(source)[0][: len(pairs)]
    answers = translator.answers(lines, batch_size)
    predicted = [
        (pair[0], list(answer.hypotheses[0].hypothesis.tokens))
        for pair, answer in zip(pairs, answers, strict=True)
        if answer.hypotheses
    ]
    if not predicted:
        raise UserError(f"{folder}: no output finished")
    figures: dict[str, Any] = {"model": str(folder), "sentences": len(pairs)}
    end = translator.stepper.eos
    for mode, targets in (("forced", pairs), ("predicted", predicted)):
        steps = list(steps_of(translator, targets, batch_size))
        figures[mode] = {
            "attention": summarise(
                [(step.position, step.token, step.attended) for step in steps], end
            ),
            "output": summarise(
                [(step.position, step.token, step.possible) for step in steps], end
            ),
        }
    return figures


def number(value: float) -> str:
    """Format a count or mean."""
    return f"{value:,.0f}" if isinstance(value, int) or value >= 1000 else f"{value:.2f}"


def table3(figures: Mapping[str, Any]) -> str:
    """Return mean nonzeros a step, as in the paper's Table 3, and the share of steps with one."""
    head = ["model"]
    for mode in MODES:
        for side in ("# attended", "# target tokens"):
            head += [f"{side}, {mode}", "just one"]
    rows = []
    for name, model in figures.items():
        cells = [model[mode][side] for mode in MODES for side in SIDES]
        texts = [(number(cell["mean"]), f"{cell['share_of_one']:.1%}") for cell in cells]
        rows.append([name, *(text for pair in texts for text in pair)])
    return markdown_table(head, rows)


def markdown(figures: Mapping[str, Any]) -> str:
    """Return all tables."""
    sentences = counted(next(iter(figures.values()))["sentences"], "sentence")
    modes = "; ".join(f"*{mode}*: {meaning}" for mode, meaning in MODES.items())
    parts = ["# Nonzeros per step", f"{sentences}. {modes} (beam search).", table3(figures)]
    for mode, meaning in MODES.items():
        for side in SIDES:
            measured = {name: model[mode][side] for name, model in figures.items()}
            parts += [
                f"## {side.capitalize()}, {meaning}",
                _quantile_table(measured),
                _mean_table("rank of the token", "by_rank", measured),
                _mean_table("position", "by_position", measured),
            ]
    return "\n\n".join(parts) + "\n"


def _quantile_table(measured: Mapping[str, Any]) -> str:
    """Return a table of quantiles of counts; `measured` has summaries by model."""
    head = ["model", "steps", *(f"{quantile} %" for quantile in QUANTILES), "most"]
    rows = []
    for name, summary in measured.items():
        quantiles = [f"{value:,g}" for value in summary["quantiles"].values()]
        rows.append([name, str(summary["steps"]), *quantiles, number(summary["most"])])
    return markdown_table(head, rows)


def _mean_table(title: str, key: str, measured: Mapping[str, Any]) -> str:
    """Return a table of means by rank or position, a column for each model."""
    rows = []
    groups = dict.fromkeys(group for summary in measured.values() for group in summary[key])
    for group in groups:
        means = [summary[key].get(group, {}).get("mean") for summary in measured.values()]
        rows.append([group, *("" if mean is None else number(mean) for mean in means)])
    return markdown_table([title, *measured], rows)


def draw(figures: Mapping[str, Any]) -> Figure:
    """Draw forced decoding: distribution, means by position and by frequency.

    The upper row is attention, the lower row output.
    """
    figure, axes = pyplot.subplots(2, 3, figsize=(PAGE, 3.7))
    for line, (side, noun) in zip(axes, SIDES.items(), strict=True):
        measured = {name: model["forced"][side] for name, model in figures.items()}
        _draw_row(line, measured)
        line[0].set_xlabel(noun)
        line[0].set_ylabel("share of steps with\nat most this many")
        line[1].set_ylabel(f"{noun},\nmean")
        wide = any(summary["most"] > WIDE for summary in measured.values())
        line[0].set_xscale("log" if wide else "linear")
        for axis in line[1:]:
            axis.set_yscale("log" if wide else "linear")
            axis.set_ylim(bottom=0.9 if wide else 0)
            axis.grid(axis="y")
        for axis in line:
            plain_numbers(axis)
    axes[1, 1].set_xlabel("position in the target")
    axes[1, 2].set_xlabel("frequency rank of the target token")
    legend_above(figure, axes[0, 0])
    return figure


def _draw_row(axes: Sequence[Axes], measured: Mapping[str, Any]) -> None:
    """Draw the three panels of attention or output."""
    most = max(summary["most"] for summary in measured.values())
    ranks = [
        rank
        for rank in dict.fromkeys(
            rank for summary in measured.values() for rank in summary["by_rank"]
        )
        if any(
            summary["by_rank"].get(rank, {}).get("steps", 0) >= FEW for summary in measured.values()
        )
    ]
    for name, summary in measured.items():
        points = [(int(count), share) for count, share in summary["at_most"].items()]
        if points[0][0] != 1:
            points.insert(0, (1, 0.0))
        axes[0].step(*zip(*points, (most, 1.0), strict=True), where="post", label=name)
        means = [
            (int(position), cell["mean"])
            for position, cell in summary["by_position"].items()
            if cell["steps"] >= FEW and int(position) < LAST_POSITION
        ]
        axes[1].plot(*zip(*means, strict=True) if means else ([], []))
        indices = [index for index, rank in enumerate(ranks) if rank in summary["by_rank"]]
        axes[2].plot(indices, [summary["by_rank"][ranks[i]]["mean"] for i in indices], "o")
    axes[0].set_ylim(0, 1.03)
    labels = [rank.replace("-", "–") for rank in ranks]
    axes[2].set_xticks(range(len(ranks)), labels, rotation=30, ha="right", rotation_mode="anchor")
    axes[2].set_xlim(-0.5, max(len(ranks), 1) - 0.5)
