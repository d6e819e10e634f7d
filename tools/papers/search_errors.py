"""Errors of beam search: sources for which it misses the most probable output.

After Stahlberg and Byrne (2019).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.checkpoint import LoadedModel, load
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines
from onmt_entmax.report.answers import Answer
from onmt_entmax.search import Budget, Hypothesis, SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tools.papers.markdown import markdown_table
from tools.papers.text_table import Table

ROUNDING = 1e-5  # difference of equal log-probabilities that were computed in two batches


class SearchLimits(NamedTuple):
    """Limits of the searches for one source.

    Attributes:
        beam_size: hypotheses of beam search.
        max_length: tokens of an output.
        budget: prefixes that exact search continues.
    """

    beam_size: int
    max_length: int
    budget: int


class Searched(NamedTuple):
    """The answers of three searches for a source.

    Attributes:
        beam: answer of beam search.
        exact: answer of exact search; None if the beam's output was proven already.
        empty: answer of a search for the empty output alone.
    """

    beam: Answer
    exact: Answer | None
    empty: Answer


@dataclass
class Counts:
    """Numbers of sources for which a search found or proved something.

    Attributes:
        proven_by_beam: beam search proved its best output to be the most probable.
        proven: beam search or exact search proved an output to be the most probable.
        missed: exact search found a more probable output than beam search.
        empty_possible: the empty output has a positive probability.
        empty_best: the empty output is proven to be the most probable.
        empty_probabilities: probabilities of the empty output, where it is possible.
    """

    proven_by_beam: int = 0
    proven: int = 0
    missed: int = 0
    empty_possible: int = 0
    empty_best: int = 0
    empty_probabilities: list[float] = field(default_factory=list)

    def add(self, searched: Searched) -> None:
        """Count a source."""
        beam_output = _best(searched.beam)
        exact_output = _best(searched.exact) if searched.exact is not None else None
        outputs = [output for output in (beam_output, exact_output) if output is not None]
        best = max(outputs, key=lambda output: output.log_prob, default=None)
        beam_log_prob = -math.inf if beam_output is None else beam_output.log_prob
        is_proven = searched.exact is None or _is_proven(searched.exact)
        self.proven_by_beam += searched.exact is None
        self.proven += is_proven
        self.missed += best is not None and best.log_prob > beam_log_prob + ROUNDING
        self.empty_possible += bool(searched.empty.hypotheses)
        self.empty_best += is_proven and best is not None and not best.tokens
        for empty in searched.empty.hypotheses:
            self.empty_probabilities.append(math.exp(empty.hypothesis.log_prob))

    def rows(self, sources: int) -> list[list[str]]:
        """Return the rows of the table, for a number of sources."""
        counts = {
            "most probable output proven by the beam": self.proven_by_beam,
            "most probable output proven": self.proven,
            "missed by the beam": self.missed,
            "empty output possible": self.empty_possible,
            "empty output the most probable": self.empty_best,
        }
        mean = sum(self.empty_probabilities) / sources
        return [
            *([name, f"{count:,}", f"{count / sources:.2%}"] for name, count in counts.items()),
            ["probability of the empty output: mean", f"{mean:.2g}", ""],
            ["largest", f"{max(self.empty_probabilities, default=0):.2g}", ""],
        ]


def search_errors(
    models: Sequence[Path], source: Path, limits: SearchLimits, batch_size: int
) -> str:
    """Return a table of what beam search and exact search find for the sources of a file.

    Args:
        models: folders of the models, which are averaged.
        source: file of sources; blank lines are left out.
        limits: limits of the searches.
        batch_size: sources of a batch.

    Raises:
        UserError: a model or the source cannot be read, or the source is empty.
    """
    lines = [line for line in read_lines(source) if line.strip()]
    if not lines:
        raise UserError(f"{source}: has no words")
    counts = Counts()
    for searched in _search([load(folder) for folder in models], lines, limits, batch_size):
        counts.add(searched)
    heading = [f"beam {limits.beam_size}", f"of {len(lines):,}", ""]
    return markdown_table(Table(heading, counts.rows(len(lines))))


def _search(
    models: Sequence[LoadedModel], sources: Sequence[str], limits: SearchLimits, batch_size: int
) -> list[Searched]:
    """Search the outputs of all sources; search exactly only if beam search proves nothing."""

    def answers(task: SearchTask, lines: Sequence[str]) -> list[Answer]:
        return list(Translator(models, task).answers(lines, batch_size))

    beam_answers = answers(_beam_task(limits), sources)
    unproven = [index for index, answer in enumerate(beam_answers) if not _is_proven(answer)]
    exact_answers = answers(_exact_task(limits), [sources[index] for index in unproven])
    exact_by_index = dict(zip(unproven, exact_answers, strict=True))
    empty_task = SearchTask(SearchConfig(beam_size=1, max_length=0))
    return [
        Searched(beam_answers[index], exact_by_index.get(index), empty_answer)
        for index, empty_answer in enumerate(answers(empty_task, sources))
    ]


def _beam_task(limits: SearchLimits) -> SearchTask:
    """Return a beam search that returns all outputs it has finished (`n_best` 0)."""
    return SearchTask(SearchConfig(limits.beam_size, n_best=0, max_length=limits.max_length))


def _exact_task(limits: SearchLimits) -> SearchTask:
    """Return exact search for the most probable output."""
    config = SearchConfig(limits.beam_size, n_best=1, stop="optimal", max_length=limits.max_length)
    return SearchTask(config, "exact", Budget(limits.budget))


def _is_proven(answer: Answer) -> bool:
    """Return whether the best output is proven to be the most probable."""
    return answer.result is not None and answer.result.certificate.level != "none"


def _best(answer: Answer) -> Hypothesis | None:
    """Return the best finished hypothesis, if there is one."""
    return answer.hypotheses[0].hypothesis if answer.hypotheses else None
