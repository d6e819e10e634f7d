"""Write the paradigms of `paradigm` as tables, CSV, JSON or a page, one lemma after another."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

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

FORMATS = ("table", "csv", "json", "html")


def write_paradigms(
    answers: Iterator[Inflection],
    sizes: Sequence[int],
    kind: str,
    least: float,
    output: Path | None,
) -> None:
    """Write the paradigm of each lemma, and warn of what may be wrong.

    Args:
        answers: the cells of all lemmas.
        sizes: how many cells each lemma has.
        kind: format, one of `FORMATS`.
        least: probability of the forms that are shown, which a page explains.
        output: file to write; None: the standard output.
    """
    if output is None:
        width = shutil.get_terminal_size((sys.maxsize, 0)).columns
        written = _written(answers, sizes, kind, least, width)
        sys.stdout.write(written.text)
    else:
        # A file that cannot be written is refused here, before the search.
        with replaced_when_done([output]) as (file,):
            written = _written(answers, sizes, kind, least)
            file.write(written.text)
    # A table says itself how many forms were left out, for who sees it.
    table_is_seen = output is None and kind == "table"
    if written.left_out.forms and not table_is_seen:
        note(written.left_out.text())
    warn(*written.warnings.lines())


class _Written(NamedTuple):
    """The text of all paradigms, and counts over their cells."""

    text: str
    warnings: WarningCounts
    left_out: LeftOut


def _written(
    answers: Iterator[Inflection],
    sizes: Sequence[int],
    kind: str,
    least: float,
    width: int = sys.maxsize,
) -> _Written:
    """Search the cells of all lemmas; return their text, and counts over them.

    A paradigm becomes text before the next one is searched: its cells need more memory.

    Args:
        answers: the cells of all lemmas.
        sizes: how many cells each lemma has.
        kind: format.
        least: probability of the forms that are shown, which a page explains.
        width: of a terminal, for tables.
    """
    warnings, left_out = WarningCounts(), LeftOut()
    lemmas: list[Question] = []
    texts: list[str] = []
    for size in sizes:
        cells = list(islice(answers, size))
        for cell in cells:
            warnings.add(cell)
            left_out.add(cell)
        lemmas.append(cells[0].question)
        texts.append(_text_of_lemma(cells, kind, width))
    return _Written(_joined(lemmas, texts, kind, least), warnings, left_out)


def _text_of_lemma(cells: Sequence[Inflection], kind: str, width: int) -> str:
    """Return the paradigm of one lemma in a format; a table for a terminal of a width."""
    if kind == "html":
        return as_html(cells)
    if kind == "csv":
        return as_csv(cells)
    if kind == "json":
        return json_line(as_record(cells))
    return as_text(cells, width)


def _joined(lemmas: Sequence[Question], texts: Sequence[str], kind: str, least: float) -> str:
    """Return the paradigms of all lemmas in one text.

    Args:
        lemmas: the query of a cell of each lemma.
        texts: the paradigm of each lemma.
        kind: format.
        least: probability of the forms that are shown, which a page explains.
    """
    if kind == "html":
        several = len(lemmas) > 1
        title = "paradigms" if several else f"{lemmas[0].lemma} ({lemmas[0].language})"
        return html_page(texts, title, least)
    if kind == "csv":
        return CSV_HEAD + "".join(texts)
    if kind == "json":
        return "".join(texts)
    if len(texts) == 1:
        return f"{texts[0]}\n"
    titles = [printable(question.lemma) for question in lemmas]
    tables = [f"{title}\n\n{text}" for title, text in zip(titles, texts, strict=True)]
    return "\n\n".join(tables) + "\n"
