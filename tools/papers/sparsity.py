"""Counts of nonzeros of attention and output at each decoding step (Peters et al. 2019, Table 3).

`sparsity_tables.py` and `figure_sparsity.py` have the tables and the figure of these counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onmt_entmax.data.vocabulary import TARGET_SPECIALS
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_aligned
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tools.papers.forced_steps import ForcedStep, Pair, read_pairs, steps_of

QUANTILES = (5, 25, 50, 75, 95)
LAST_POSITION = 30  # later target positions are counted as this one
RANKS = (10, 100, 1000, 10_000)  # upper limits of the frequency classes


def rank_class(token: int, end: int) -> str:
    """Return the frequency class of a token by its vocabulary rank: "1-10", "11-100", ..."""
    if token == end:
        return "end"
    rank = token - len(TARGET_SPECIALS) + 1
    if rank < 1:
        return "unknown"
    low = 1
    for high in RANKS:
        if rank <= high:
            return f"{low}-{high}"
        low = high + 1
    return f"{low}-"


def summarise(steps: Sequence[ForcedStep], counts: Sequence[int], end: int) -> dict[str, Any]:
    """Return means, quantiles and shares of counts.

    Args:
        steps: of decoding.
        counts: of nonzeros, one for each step.
        end: id of the end symbol.

    Returns:
        Measures by name; `at_most` is the cumulative distribution, the share of the steps that have
        at most so many.
    """
    values = np.array(counts)
    distinct, frequencies = np.unique(values, return_counts=True)
    positions: dict[int, list[int]] = defaultdict(list)
    ranks: dict[str, list[int]] = defaultdict(list)
    for step, count in zip(steps, counts, strict=True):
        positions[min(step.position, LAST_POSITION)].append(count)
        ranks[rank_class(step.token, end)].append(count)
    shares = (frequencies.cumsum() / len(values)).tolist()
    return {
        "steps": len(values),
        "mean": float(values.mean()),
        "share_of_one": float((values == 1).mean()),
        "quantiles": {str(q): float(np.percentile(values, q)) for q in QUANTILES},
        "most": int(values.max()),
        "at_most": dict(zip(map(str, distinct), shares, strict=True)),
        "by_position": {
            str(position): _mean_of(positions[position]) for position in sorted(positions)
        },
        "by_rank": {name: _mean_of(ranks[name]) for name in sorted(ranks, key=_place_of_class)},
    }


def _place_of_class(name: str) -> tuple[int, int]:
    """Return a key that sorts frequency classes by rank, then "unknown", then "end"."""
    if name in ("unknown", "end"):
        return (1 if name == "unknown" else 2), 0
    return 0, int(name.partition("-")[0])


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

    Args:
        folder: of the model.
        source: file.
        target: file with a line for each line of it.
        transforms: of both files, instead of those of the training.
        limit: number of pairs; None: all.
        beam_size: of the search for the model's own outputs.
        batch_size: sentences of a batch.

    Raises:
        UserError: something cannot be read, or no output finished.
    """
    task = SearchTask(SearchConfig(beam_size))
    translator = Translator.from_folders([folder], task, transforms=transforms, attention=True)
    pairs = read_pairs(translator, source, target, limit)
    lines = read_aligned(source)[0][: len(pairs)]
    answers = translator.answers(lines, batch_size)
    predicted = [
        Pair(pair.source, list(answer.hypotheses[0].hypothesis.tokens))
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
            "attention": summarise(steps, [step.attended for step in steps], end),
            "output": summarise(steps, [step.possible for step in steps], end),
        }
    return figures
