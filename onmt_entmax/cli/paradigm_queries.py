"""The queries of `paradigm`: a lemma, or a file of them, and the cells of each."""

import argparse
import shlex
from collections.abc import Iterable
from typing import NamedTuple

from onmt_entmax.checkpoint import read_cells
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines
from onmt_entmax.inflector import Inflector, Question
from onmt_entmax.paradigm import COLUMN_OR_LINE_END, cells_of
from onmt_entmax.rules import shown
from onmt_entmax.strings.cells import Cells, parse_cells
from onmt_entmax.strings.languages import known_as


class Lemma(NamedTuple):
    """A lemma whose paradigm is asked for."""

    text: str
    pos: str | None
    """Part of speech; None: the only one of the language."""


def read_lemmas(options: argparse.Namespace) -> list[Lemma]:
    """Return the lemma of the command line, or those of a file.

    Args:
        options: `lemma`, or `lemmas`; and `pos`, of lines that name none.

    Raises:
        UserError: the lemma is empty; the file has no lemma, or a line more than two columns; or
            the format, Keyman's list, cannot hold a lemma.
    """
    if options.lemma is not None:
        if not options.lemma.strip():
            raise UserError("the lemma is empty")
        lemmas = [Lemma(options.lemma, options.pos)]
    else:
        lemmas = _lemmas_of_file(options)
    if options.format == "keyman":
        for lemma in lemmas:
            if COLUMN_OR_LINE_END.search(lemma.text):
                raise UserError(
                    f"{shown(lemma.text)}: a tab or line end, which a column cannot have"
                )
    return lemmas


def _lemmas_of_file(options: argparse.Namespace) -> list[Lemma]:
    """Return the lemmas of a file, each of which may have its part of speech.

    Raises:
        UserError: there are none, or a line has more than two columns.
    """
    lemmas: list[Lemma] = []
    for number, line in enumerate(read_lines(options.lemmas), 1):
        lemma, *pos = line.rstrip().split("\t")
        if len(pos) > 1 or (pos and not lemma):
            raise UserError(
                f"{options.lemmas}:{number}: expected lemma, or lemma<TAB>part of speech"
            )
        if lemma:
            lemmas.append(Lemma(lemma, pos[0] if pos else options.pos))
    if not lemmas:
        raise UserError(f"{options.lemmas}: no lemmas")
    return lemmas


def cells_to_show(options: argparse.Namespace, inflector: Inflector, lemma: str) -> Cells:
    """Return the cells of --cells, else those that the first model was trained on.

    Args:
        options: of the command.
        inflector: of the models.
        lemma: the first one, for the error.

    Raises:
        UserError: there are none, or the training data of the language has no tags.
    """
    folder = inflector.folders[0]
    if options.cells:
        cells = parse_cells(read_lines(options.cells), str(options.cells))
        if not cells:
            raise UserError(
                f"{options.cells}: has no cells; its lines are language, tags and their number, "
                "between tabs"
            )
    else:
        cells = read_cells(folder)
    language = known_as(options.language, {*inflector.languages, *cells})
    if language in inflector.untagged and not cells.get(language):
        query = shlex.join(["--model", str(folder), language, lemma, ""])
        raise UserError(
            f"{folder}: its training data for {language} has no tags, hence no paradigms; "
            f"onmt-entmax inflect {query} prints the form of a lemma"
        )
    if not cells:
        raise UserError(
            f"{folder}: trained by a version that kept no cells.tsv; name one with --cells: lines "
            "of language, tags and their number, between tabs"
        )
    return cells


def questions_of(lemmas: Iterable[Lemma], cells: Cells, language: str) -> list[list[Question]]:
    """Return a query for each cell of each lemma.

    Args:
        lemmas: each with its part of speech, if one is named.
        cells: of all languages.
        language: as the cells name it.

    Raises:
        UserError: the language has no cells, or no such part of speech.
    """
    return [
        [Question(language, lemma.text, tags) for tags in cells_of(cells, language, lemma.pos)]
        for lemma in lemmas
    ]
