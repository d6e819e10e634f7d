"""Counts of nonzeros of attention and output at each decoding step (Peters et al. 2019, Table 3).

`sparsity_tables.py` and `figure_sparsity.py` have the tables and the figure of these counts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypedDict

import numpy as np

from onmt_entmax.data.vocabulary import TARGET_SPECIALS
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_aligned
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tools.papers.forced_steps import ForcedStep, Pair, ParallelText, read_pairs, steps_of

QUANTILES = (5, 25, 50, 75, 95)  # in percent
LAST_POSITION = 30  # later target positions are counted as this one
RANKS = (10, 100, 1000, 10_000)  # last rank of each frequency class but the rarest
# All frequency classes, as tables and figures order them.
CLASSES = ("1-10", "11-100", "101-1000", "1001-10000", "10001-", "unknown", "end")


def rank_class(token: int, end: int) -> str:
    """Return the frequency class of a token, one of `CLASSES`.

    Vocabularies are sorted by frequency, so that ids after the special tokens are ranks.

    Args:
        token: id of the token.
        end: id of the end symbol.
    """
    if token == end:
        return "end"
    rank = token - len(TARGET_SPECIALS) + 1
    if rank < 1:  # another special token
        return "unknown"
    return CLASSES[bisect_left(RANKS, rank)]


class GroupMean(TypedDict):
    """The mean of the counts of some decoding steps.

    Attributes:
        steps: number of steps.
        mean: mean of their counts.
    """

    steps: int
    mean: float


class Summary(TypedDict):
    """Counts of nonzeros over decoding steps, for JSON.

    Attributes:
        steps: number of steps.
        mean: mean of the counts.
        share_of_one: share of the steps with a single nonzero.
        quantiles: quantiles of the counts, by percent; see `QUANTILES`.
        most: largest count.
        at_most: share of the steps with at most n nonzeros, for each n that occurs, in ascending
            order.
        by_position: means by target position, up to `LAST_POSITION`.
        by_rank: means by frequency class; see `CLASSES`.
    """

    steps: int
    mean: float
    share_of_one: float
    quantiles: dict[str, float]
    most: int
    at_most: dict[str, float]
    by_position: dict[str, GroupMean]
    by_rank: dict[str, GroupMean]


class ModeSummary(TypedDict):
    """Counts of one mode: attended source positions, and possible target tokens."""

    attention: Summary
    output: Summary


class Figures(TypedDict):
    """The figures of a model, for JSON.

    Attributes:
        model: its folder.
        sentences: number of sentences.
        forced: counts along the references.
        predicted: counts along the model's own outputs.
    """

    model: str
    sentences: int
    forced: ModeSummary
    predicted: ModeSummary


Mode = Literal["forced", "predicted"]
Side = Literal["attention", "output"]


def summarise(steps: Sequence[ForcedStep], counts: Sequence[int], end: int) -> Summary:
    """Return the summary of the nonzeros of decoding steps.

    Args:
        steps: decoding steps of all targets.
        counts: number of nonzeros of each step.
        end: id of the end symbol.
    """
    values = np.array(counts)  # (steps,)
    distinct, frequencies = np.unique(values, return_counts=True)
    shares = (frequencies.cumsum() / len(values)).tolist()
    by_position: dict[int, list[int]] = defaultdict(list)
    by_class: dict[str, list[int]] = defaultdict(list)
    for step, count in zip(steps, counts, strict=True):
        by_position[min(step.position, LAST_POSITION)].append(count)
        by_class[rank_class(step.token, end)].append(count)
    return {
        "steps": len(values),
        "mean": float(values.mean()),
        "share_of_one": float((values == 1).mean()),
        "quantiles": {str(q): float(np.percentile(values, q)) for q in QUANTILES},
        "most": int(values.max()),
        "at_most": dict(zip(map(str, distinct), shares, strict=True)),
        "by_position": {
            str(position): _mean_of(by_position[position]) for position in sorted(by_position)
        },
        "by_rank": {name: _mean_of(by_class[name]) for name in CLASSES if name in by_class},
    }


def _mean_of(counts: Sequence[int]) -> GroupMean:
    """Return the number of steps, and the mean of their counts."""
    return {"steps": len(counts), "mean": float(np.mean(counts))}


def measure(folder: Path, text: ParallelText, beam_size: int, batch_size: int) -> Figures:
    """Return the figures of one model.

    Args:
        folder: folder of the model.
        text: sources, and the references along which the model is forced.
        beam_size: beam size of the search for the model's own outputs.
        batch_size: sentences of a batch.

    Raises:
        UserError: something cannot be read, or no output finished.
    """
    task = SearchTask(SearchConfig(beam_size))
    translator = Translator.from_folders([folder], task, transforms=text.transforms, attention=True)
    pairs = read_pairs(translator, text)
    lines = read_aligned(text.source)[0][: len(pairs)]  # as text; `pairs` has their tokens
    predicted = list(_predicted_pairs(translator, pairs, lines, batch_size))
    if not predicted:
        raise UserError(f"{folder}: no output finished")
    return {
        "model": str(folder),
        "sentences": len(pairs),
        "forced": _mode_summary(translator, pairs, batch_size),
        "predicted": _mode_summary(translator, predicted, batch_size),
    }


def _mode_summary(translator: Translator, pairs: Sequence[Pair], batch_size: int) -> ModeSummary:
    """Return the counts of decoding along the targets of pairs."""
    end = translator.stepper.eos
    steps = list(steps_of(translator, pairs, batch_size))
    return {
        "attention": summarise(steps, [step.attended for step in steps], end),
        "output": summarise(steps, [step.possible for step in steps], end),
    }


def _predicted_pairs(
    translator: Translator, pairs: Sequence[Pair], lines: Sequence[str], batch_size: int
) -> Iterator[Pair]:
    """Yield the pairs with the model's best outputs as targets, where an output finished."""
    answers = translator.answers(lines, batch_size)
    for pair, answer in zip(pairs, answers, strict=True):
        if answer.hypotheses:
            yield Pair(pair.source, list(answer.hypotheses[0].hypothesis.tokens))
