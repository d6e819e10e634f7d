"""Write the paradigms of lemmas as tables, CSV, JSON or an HTML page."""

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from onmt_entmax.cli.messages import note, warn
from onmt_entmax.errors import printable
from onmt_entmax.files import json_line, replaced_when_done
from onmt_entmax.inflector import Inflection, Question
from onmt_entmax.paradigm import (
    CSV_HEAD,
    LeftOut,
    WarningCounts,
    as_csv,
    as_html,
    as_record,
    as_text,
    html_page,
)


@dataclass(frozen=True)
class _Format:
    """A format of paradigms, as two functions.

    Attributes:
        of_lemma: takes the cells of a lemma and the width of the terminal in columns; returns the
            text of the lemma.
        joined: takes a query of each lemma, the text of each lemma, and the least probability of
            the forms that are shown; returns the text of all lemmas.
    """

    of_lemma: Callable[[Sequence[Inflection], int], str]
    joined: Callable[[Sequence[Question], Sequence[str], float], str]


def _joined_tables(lemmas: Sequence[Question], texts: Sequence[str], least: float) -> str:
    """Return tables, each below its lemma if there are several; each table names `least` itself."""
    if len(texts) == 1:
        return f"{texts[0]}\n"
    titles = [printable(question.lemma) for question in lemmas]
    tables = [f"{title}\n\n{text}" for title, text in zip(titles, texts, strict=True)]
    return "\n\n".join(tables) + "\n"


def _page(lemmas: Sequence[Question], texts: Sequence[str], least: float) -> str:
    """Return a page, whose legend explains `least`."""
    several = len(lemmas) > 1
    title = "paradigms" if several else f"{lemmas[0].lemma} ({lemmas[0].language})"
    return html_page(texts, title, least)


FORMATS: Mapping[str, _Format] = {
    "table": _Format(as_text, _joined_tables),
    "csv": _Format(
        lambda cells, width: as_csv(cells),
        lambda lemmas, texts, least: CSV_HEAD + "".join(texts),
    ),
    "json": _Format(
        lambda cells, width: json_line(as_record(cells)),
        lambda lemmas, texts, least: "".join(texts),
    ),
    "html": _Format(lambda cells, width: as_html(cells), _page),
}
"""Formats by the names that `--format` takes"""


def write_paradigms(
    answers: Iterator[Inflection],
    sizes: Sequence[int],
    *,
    kind: str,
    least: float,
    output: Path | None,
) -> None:
    """Write the paradigm of each lemma, and warn of what may be wrong.

    Args:
        answers: the cells of all lemmas.
        sizes: number of cells of each lemma.
        kind: name of the format, one of `FORMATS`.
        least: least probability of the forms that are shown, for a page's legend.
        output: file to write; None: the standard output.
    """
    cells = _CellsByLemma(answers, sizes)
    if output is None:
        # Without a terminal, tables may be of any width.
        width = shutil.get_terminal_size((sys.maxsize, 0)).columns
        sys.stdout.write(_text(cells, FORMATS[kind], least, width))
    else:
        # A file that cannot be written is refused here, before the search.
        with replaced_when_done([output]) as (file,):
            file.write(_text(cells, FORMATS[kind], least, sys.maxsize))
    shows_left_out = output is None and kind == "table"  # the printed table has this note itself
    if cells.left_out.forms and not shows_left_out:
        note(cells.left_out.text())
    warn(*cells.warnings.lines())


class _CellsByLemma:
    """Iterates over lemmas: it yields the cells of each, and counts their warnings.

    Args:
        answers: the cells of all lemmas.
        sizes: number of cells of each lemma.

    Attributes:
        warnings: warnings of the cells so far.
        left_out: forms of the cells so far that are too improbable.
    """

    def __init__(self, answers: Iterator[Inflection], sizes: Sequence[int]) -> None:
        self._answers, self._sizes = answers, sizes
        self.warnings = WarningCounts()
        self.left_out = LeftOut()

    def __iter__(self) -> Iterator[list[Inflection]]:
        for size in self._sizes:
            cells = list(islice(self._answers, size))
            for cell in cells:
                self.warnings.add(cell)
                self.left_out.add(cell)
            yield cells


def _text(
    cells_by_lemma: Iterable[Sequence[Inflection]], kind: _Format, least: float, width: int
) -> str:
    """Return the paradigms of all lemmas as text.

    A paradigm becomes text before the next one is searched, since its cells need more memory.

    Args:
        cells_by_lemma: the cells of each lemma, which are searched when the iteration reaches them.
        kind: the format.
        least: least probability of the forms that are shown, for a page's legend.
        width: width of a terminal in columns, for tables.
    """
    lemmas: list[Question] = []
    texts: list[str] = []
    for cells in cells_by_lemma:
        lemmas.append(cells[0].question)
        texts.append(kind.of_lemma(cells, width))
    return kind.joined(lemmas, texts, least)
