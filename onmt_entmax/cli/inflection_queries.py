"""Read the queries of `inflect`: one on the command line, or one in each line of the input."""

import argparse
import sys
from collections.abc import Callable, Iterable

from onmt_entmax.cli.messages import note, warn
from onmt_entmax.cli.streams import STDIN, STDIN_NAME
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_lines, text_lines
from onmt_entmax.inflector import Inflector, Question
from onmt_entmax.strings.cells import Combinations
from onmt_entmax.strings.column_names import named_columns
from onmt_entmax.strings.languages import known_as
from onmt_entmax.strings.marks import split_tags
from onmt_entmax.strings.task import LANGUAGE_COLUMN, SOURCE, TAGS


def questions_of(inflector: Inflector, options: argparse.Namespace) -> list[Question]:
    """Return the query on the command line, or the queries of the input.

    Args:
        inflector: the models, which must be able to answer the queries.
        options: `query`, `input` and `language`.

    Raises:
        UserError: a line is not a query, or there are no queries.
    """
    if options.query:
        question = read_question("\t".join(options.query), options.language)
        _warn_of_new_combination(inflector, question)
        return [question]
    if options.input in (None, STDIN):
        lines, name = text_lines(sys.stdin.buffer, STDIN_NAME), STDIN_NAME
    else:
        lines, name = read_lines(options.input), str(options.input)
    return _read_questions(lines, name, options.language, inflector.check)


def read_question(line: str, language: str | None) -> Question:
    """Return the query of a line.

    Args:
        line: language, lemma and tags, or lemma and tags alone.
        language: language of the query; None: the line begins with it.

    Raises:
        UserError: the line has another number of columns.
    """
    expected = ["lemma", "tags"] if language else ["language", "lemma", "tags"]
    columns = _columns(line)
    if len(columns) != len(expected):
        hint = ""
        if language and len(columns) == 3:
            hint = "; if these are lemma, form and tags, keep columns 1 and 3 (cut -f1,3)"
        raise UserError(
            f"expected {' '.join(expected)}, separated by tabs (or spaces), "
            f"found {counted(len(columns), 'column')}{hint}"
        )
    *own_language, lemma, tags = columns
    return Question(language or own_language[0], lemma, split_tags(tags))


def _columns(line: str) -> list[str]:
    """Return the columns of a line: between tabs, or between spaces if it has no tab."""
    return line.split("\t") if "\t" in line else line.split()


def _read_questions(
    lines: Iterable[str],
    name: str,
    language: str | None,
    check: Callable[[Question], None],
) -> list[Question]:
    """Return the queries of a file's lines; leave out blank lines, and a heading with a note.

    Args:
        lines: lines of the file.
        name: name of the file, for errors.
        language: language of all queries; None if each line begins with its own.
        check: refuses queries that the models cannot answer.

    Raises:
        UserError: a line is not a query, `check` refuses one, or there are no queries.
    """
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    expected = (SOURCE, TAGS) if language else (LANGUAGE_COLUMN, SOURCE, TAGS)
    rows = [_columns(line) for _, line in numbered]
    if rows and named_columns(rows[0], rows[1:]) == expected:
        (_, heading), *numbered = numbered
        note(f"{name}: heading {heading!r} left out")
    questions = []
    for number, line in numbered:
        try:
            question = read_question(line, language)
            check(question)
        except UserError as error:
            raise UserError(f"{name}:{number}: {error}") from None
        questions.append(question)
    if not questions:
        raise UserError(f"{name}: no queries")
    return questions


def _warn_of_new_combination(inflector: Inflector, question: Question) -> None:
    """Warn if no training source of a language has exactly the tags of a query.

    If a cell begins with the only tag of the query, a shell may have cut the tags at a `;`: without
    quotes, it takes `V;PST` for `V` and another command.
    """
    language, tags = known_as(question.language, inflector.cells), question.tags
    cells = inflector.cells.get(language, {})
    meant = next((cell for cell in cells if cell[:1] == tags), None)
    if meant and tags not in cells:
        warn(
            f"no training source of {language} has the tag {tags[0]} alone; "
            f'a shell needs quotes around tags, such as "{";".join(meant)}"'
        )
    elif Combinations(inflector.cells).is_new(language, tags):
        warn(f"no training source of {language} has exactly the tags {';'.join(tags)}")
