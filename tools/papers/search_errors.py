"""Errors of beam search: sources for which it misses the most probable output.

After Stahlberg and Byrne (2019).
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from onmt_entmax.checkpoint import load
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import Budget, Hypothesis, SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tools.papers.markdown import markdown_table

ROUNDING = 1e-5  # difference of equal log-probabilities that were computed in two batches


class Searched(NamedTuple):
    """What searches found for a source.

    Attributes:
        beam: of beam search.
        exact: of exact search; None if the beam's output was proven already.
        empty: of a search for the empty output.
    """

    beam: Answer
    exact: Answer | None
    empty: Answer


def search_errors(options: argparse.Namespace) -> str:
    """Return the table of `search`.

    Raises:
        UserError: a model or the source cannot be read, or the source is empty.
    """
    lines = [line for line in read_lines(options.source) if line.strip()]
    if not lines:
        raise UserError(f"{options.source}: has no words")
    counts: Counter[str] = Counter()
    masses: list[float] = []
    for searched in _search(options, lines):
        counts.update({name: int(fact) for name, fact in _facts(searched).items()})
        masses += [math.exp(empty.hypothesis.log_prob) for empty in searched.empty.hypotheses]
    rows = [[name, f"{count:,}", f"{count / len(lines):.2%}"] for name, count in counts.items()]
    rows.append(["probability of the empty output: mean", f"{sum(masses) / len(lines):.2g}", ""])
    rows.append(["largest", f"{max(masses, default=0):.2g}", ""])
    return markdown_table([f"beam {options.beam_size}", f"of {len(lines):,}", ""], rows)


def _search(options: argparse.Namespace, lines: Sequence[str]) -> list[Searched]:
    """Search the outputs of all sources, exactly where the beam proves nothing."""
    models = [load(folder) for folder in options.models]
    length = options.max_length
    all_outputs = 0  # as n_best
    beam = SearchTask(SearchConfig(options.beam_size, n_best=all_outputs, max_length=length))
    exact = SearchTask(
        SearchConfig(options.beam_size, n_best=1, stop="optimal", max_length=length),
        "exact",
        Budget(options.budget),
    )
    empty = SearchTask(SearchConfig(beam_size=1, max_length=0))

    def answers(task: SearchTask, sources: Sequence[str]) -> list[Answer]:
        return list(Translator(models, task).answers(sources, options.batch_size))

    beams = answers(beam, lines)
    unproven = [index for index, answer in enumerate(beams) if not _is_proven(answer)]
    exacts = answers(exact, [lines[index] for index in unproven])
    by_index = dict(zip(unproven, exacts, strict=True))
    return [
        Searched(beams[index], by_index.get(index), answer)
        for index, answer in enumerate(answers(empty, lines))
    ]


def _facts(searched: Searched) -> dict[str, bool]:
    """Return what is true of a source, by the names in the table."""
    of_beam = _best(searched.beam)
    of_exact = _best(searched.exact) if searched.exact is not None else None
    outputs = [output for output in (of_beam, of_exact) if output is not None]
    best = max(outputs, key=lambda output: output.log_prob, default=None)
    reached = -math.inf if of_beam is None else of_beam.log_prob
    proven = searched.exact is None or _is_proven(searched.exact)
    return {
        "most probable output proven by the beam": searched.exact is None,
        "most probable output proven": proven,
        "missed by the beam": best is not None and best.log_prob > reached + ROUNDING,
        "empty output possible": bool(searched.empty.hypotheses),
        "empty output the most probable": proven and best is not None and not best.tokens,
    }


def _is_proven(answer: Answer) -> bool:
    """Return whether the best output is proven to be the most probable."""
    return answer.result is not None and answer.result.certificate.level != "none"


def _best(answer: Answer) -> Hypothesis | None:
    """Return the best finished hypothesis, if there is one."""
    return answer.hypotheses[0].hypothesis if answer.hypotheses else None
