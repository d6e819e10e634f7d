"""Read the lemmas and the cells of `paradigm`, and make a query for each cell of each lemma."""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.cli.messages import warn
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines
from onmt_entmax.inflector import Inflector, Question
from onmt_entmax.paradigm import cells_of
from onmt_entmax.strings.cells import Cells, parse_cells
from onmt_entmax.strings.column_names import may_name_source


class Lemma(NamedTuple):
    """A lemma, and the part of speech of its paradigm.

    Attributes:
        text: the lemma.
        pos: the part of speech; None: the only one of the language.
    """

    text: str
    pos: str | None


def read_lemmas(path: Path, pos: str | None) -> list[Lemma]:
    """Return the lemmas of a file, whose lines may name their part of speech.

    Warn if the first lemma may be a heading, such as `lemma`.

    Args:
        path: file to read.
        pos: part of speech for lines that name none.

    Raises:
        UserError: there are no lemmas, or a line has more than two columns.
    """
    lemmas: list[Lemma] = []
    for number, line in enumerate(read_lines(path), 1):
        lemma, *columns = line.rstrip().split("\t")
        if len(columns) > 1 or (columns and not lemma):
            raise UserError(f"{path}:{number}: expected lemma, or lemma<TAB>part of speech")
        if lemma:
            lemmas.append(Lemma(lemma, columns[0] if columns else pos))
    if not lemmas:
        raise UserError(f"{path}: no lemmas")
    first = lemmas[0].text
    if may_name_source(first):
        warn(f"{path}: {first!r} may be a heading; it is read as a lemma")
    return lemmas


def read_cells_file(path: Path) -> Cells:
    """Return the cells of a file.

    Raises:
        UserError: the file has no cells.
    """
    cells = parse_cells(read_lines(path), str(path))
    if not cells:
        raise UserError(
            f"{path}: has no cells; its lines are language, tags and their number, between tabs"
        )
    return cells


def check_cells(cells: Cells, inflector: Inflector, language: str, example: str) -> None:
    """Check that the models were trained on cells of a language, and recorded cells.

    Args:
        cells: cells of all languages.
        inflector: the models.
        language: name of the language in the cells.
        example: a lemma, for the command that the error proposes.

    Raises:
        UserError: there are no cells, or the training data of the language has no tags.
    """
    folder = inflector.folders[0]
    if language in inflector.untagged and not cells.get(language):
        query = shlex.join(["--model", str(folder), language, example, ""])
        raise UserError(
            f"{folder}: its training data for {language} has no tags, hence no paradigms; "
            f"onmt-entmax inflect {query} prints the form of a lemma"
        )
    if not cells:
        raise UserError(
            f"{folder}: trained by a version that kept no cells.tsv; name one with --cells: lines "
            "of language, tags and their number, between tabs"
        )


def questions_of(lemmas: Iterable[Lemma], cells: Cells, language: str) -> list[list[Question]]:
    """Return a query for each cell of each lemma.

    Args:
        lemmas: each with its part of speech, if one is named.
        cells: cells of all languages.
        language: name of the language in the cells.

    Raises:
        UserError: the language has no cells, or no such part of speech.
    """
    return [
        [Question(language, lemma.text, tags) for tags in cells_of(cells, language, lemma.pos)]
        for lemma in lemmas
    ]
