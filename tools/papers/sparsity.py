"""Counts of nonzeros of attention and output at each decoding step (Peters et al. 2019, Table 3).

`figure_sparsity.py` has the tables and the figure of what is counted here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from onmt_entmax.data.batch import make_batch
from onmt_entmax.data.vocabulary import TARGET_SPECIALS
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_aligned
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.search.forced import along_targets
from onmt_entmax.translator import Translator

QUANTILES = (5, 25, 50, 75, 95)
LAST_POSITION = 30  # later target positions are counted as this one
RANKS = (10, 100, 1000, 10_000)  # upper limits of the frequency classes


Pair = tuple[list[str], list[int]]  # source tokens; target ids without start and end symbol


def read_pairs(
    translator: Translator, source: Path, target: Path, limit: int | None = None
) -> list[Pair]:
    """Return the first sentence pairs of two files.

    Raises:
        UserError: a file cannot be read or is empty, they differ in length, or a line is blank.
    """
    reader = translator.reader
    pairs = []
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
    low = 1
    for high in RANKS:
        if rank <= high:
            return f"{low}-{high}"
        low = high + 1
    return f"{low}-"


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
            "attention": summarise(steps, [step.attended for step in steps], end),
            "output": summarise(steps, [step.possible for step in steps], end),
        }
    return figures
