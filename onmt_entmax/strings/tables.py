"""Tables of strings: rows of a source, a target and often tags and a language, in any order.

A table is a text file with tabs, or commas as in CSV files, between its columns. `Layout` says what
its columns are. People name them; `guess_layout` looks at the first rows otherwise, and what it
guessed is said. Rows that cannot be read are `BadRow`s, so that all can be told at once.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from onmt_entmax.errors import UserError, counted
from onmt_entmax.strings.task import (
    LANGUAGE_COLUMN,
    LEFT_OUT,
    SOURCE,
    TAGS,
    TARGET,
    Query,
    StringTask,
    TaskError,
    check_columns,
)

SAMPLE = 2000
"""Rows that a guess looks at."""

# What people call the columns. `word` is the source, or the target of a table with another source.
NAMES = {
    SOURCE: "source, lemma, lexeme, headword, base, base form, citation form, dictionary form, "
    "input, grapheme, graphemes, orthography, spelling, src",
    TARGET: "target, form, inflected, inflected form, inflection, word form, wordform, surface, "
    "surface form, output, phoneme, phonemes, phones, pronunciation, transcription, ipa, tgt",
    TAGS: "tags, tag, features, feature, feats, msd, unimorph, morphology, morphological tags, "
    "morphological features, morphosyntactic description",
    LANGUAGE_COLUMN: "language, lang, iso",
}
_COLUMN_OF = {name: column for column, names in NAMES.items() for name in names.split(", ")}
# Where two columns have such names, the one of these.
_SUREST = {SOURCE: ("source", "lemma"), TARGET: ("target", "form"), TAGS: ("tags",)}


# What most tags of a table look like: V;PST, or tense=PST, or PST.
_LIKE_TAGS = (r".*;.*", r"\w+=.*", r"(?=.*[A-Z])[A-Z0-9.+/(),{};-]+")
ALIASES = {"lemma": SOURCE, "form": TARGET}
"""Other names of columns in `--columns` and `--separator`."""


class TableError(UserError):
    """A table that cannot be read; the message names the file."""


class Row(NamedTuple):
    """A row of a table."""

    number: int
    """Line of the file, from 1."""
    query: Query
    target: str
    """Empty where the table has none."""
    cells: tuple[str, ...]
    """All columns, as they stand in the file."""


class BadRow(NamedTuple):
    """A row that cannot be read."""

    number: int
    reason: str
    """Begins with the column, where it is one column's."""
    line: str


@dataclass(frozen=True)
class Layout:
    """The columns of a table.

    Attributes:
        columns: as in `StringTask`; the target may be missing.
        delimiter: between columns.
        heading: the names in the first line; empty without such a line.
        guessed: whether nobody named the columns.
    """

    columns: tuple[str, ...]
    delimiter: str = "\t"
    heading: tuple[str, ...] = ()
    guessed: bool = False

    def __str__(self) -> str:
        between = {"\t": "tabs", ",": "commas"}.get(self.delimiter, repr(self.delimiter))
        first = f"; heading {self.delimiter.join(self.heading)!r} left out" if self.heading else ""
        guess = " (guessed; --columns names them)" if self.guessed else ""
        return f"columns {', '.join(self.columns)} between {between}{guess}{first}"

    def cells(self, line: str) -> tuple[str, ...]:
        """Return the columns of a line.

        Raises:
            csv.Error: it is no row of a CSV file.
        """
        if self.delimiter == ",":
            return tuple(next(csv.reader([line], strict=True), ()))
        return tuple(line.split(self.delimiter))

    def row(
        self, number: int, line: str, task: StringTask, language: str = "", needs: bool = True
    ) -> Row | BadRow:
        """Return a row.

        Args:
            number: of the line, from 1.
            line: of the file.
            task: the units of its columns.
            language: of the file; a column of languages is read instead.
            needs: whether the row must have a target.
        """
        try:
            cells = self.cells(line)
        except csv.Error as error:
            return BadRow(number, f"no row of a CSV file ({error})", line)
        if len(cells) != len(self.columns):
            names = ", ".join(self.columns)
            expected = f"expected {len(self.columns)} columns, {names}; found {len(cells)}"
            return BadRow(number, expected, line)
        values = dict(zip(self.columns, cells, strict=True))
        tags = task.tags_of(values.get(TAGS, ""))
        problem = _problem(values, tags, task, needs)
        if problem:
            return BadRow(number, problem, line)
        query = Query(values[SOURCE], tags, values.get(LANGUAGE_COLUMN, language))
        return Row(number, query, values.get(TARGET, ""), cells)

    def text(self, cells: Sequence[str]) -> str:
        """Return the line of columns, the inverse of `cells`."""
        if self.delimiter != ",":
            return self.delimiter.join(cells)
        return ",".join(map(_quoted, cells))


def _quoted(cell: str) -> str:
    """Return a cell as a CSV file has it: in quotes if it has a comma or a quote."""
    if re.search('[",]', cell) is None:
        return cell
    doubled = cell.replace('"', '""')
    return f'"{doubled}"'


def _problem(values: Mapping[str, str], tags: Sequence[str], task: StringTask, needs: bool) -> str:
    """Return why a row cannot be read; nothing if it can.

    Args:
        values: by column.
        tags: of the row.
        task: the units of the columns.
        needs: whether the row must have a target.
    """
    problem = task.source.problem(values[SOURCE])
    if problem:
        return f"{SOURCE} {problem}"
    if "" in tags:
        return f"{TAGS} has an empty tag: {values[TAGS]!r}"
    problem = task.target.problem(values.get(TARGET, "")) if needs else ""
    if problem:
        return f"{TARGET} {problem}"
    language = values.get(LANGUAGE_COLUMN)
    if language is not None and language.split() != [language]:
        return f"{LANGUAGE_COLUMN} is {language!r}, not one word"
    return ""


def rows_of(
    lines: Iterable[str],
    layout: Layout,
    task: StringTask,
    language: str = "",
    needs: bool = True,
) -> Iterator[Row | BadRow]:
    """Yield the rows of a table, without its heading and blank lines; see `Layout.row`."""
    heading = bool(layout.heading)
    for number, line in enumerate(lines, 1):
        if not line.strip(f" \r{layout.delimiter}"):
            continue
        if not heading:
            yield layout.row(number, line, task, language, needs)
        heading = False


def checked_columns(text: str, needed: Sequence[str] = (SOURCE,)) -> tuple[str, ...]:
    """Return the columns that `--columns` names; lemma and form are source and target.

    Args:
        text: names between commas; none if it is empty.
        needed: columns that must be there.

    Raises:
        TableError: a column is unknown, twice there or missing.
    """
    if not text:
        return ()
    columns = tuple(ALIASES.get(name, name) for name in map(str.strip, text.split(",")))
    try:
        check_columns(columns, needed)
    except TaskError as error:
        raise TableError(f"--{error}") from None
    return columns


def refuse_misplaced_tags(
    sample: Iterable[str], layout: Layout, task: StringTask, known: Container[str], name: str
) -> None:
    """Refuse a layout by whose columns the tags of a model are elsewhere, as in another order.

    Args:
        sample: the first lines of the table.
        layout: of its columns.
        task: of the model.
        known: tags of the model.
        name: of the table, for the error.

    Raises:
        TableError: most rows have known tags in another column, and not in that of the tags.
    """
    if TAGS not in layout.columns or layout.heading:
        return
    rows = [
        cells
        for cells in readable_cells(layout, filter(str.strip, sample))
        if len(cells) == len(layout.columns)
    ]
    if not rows:
        return
    # For each column, the rows that have a known tag there.
    tagged = [
        sum(any(tag in known for tag in task.tags_of(cell)) for cell in column)
        for column in zip(*rows, strict=True)
    ]
    position = layout.columns.index(TAGS)
    if 2 * tagged[position] < len(rows) < 2 * max(tagged):
        raise TableError(
            f"{name}: column {tagged.index(max(tagged)) + 1} has the tags of the model, and not "
            f"column {position + 1}; --columns names the columns of this table, such as "
            "source,tags,target"
        )


# --- the layout of a table ---------------------------------------------------------------------


def guess_delimiter(lines: Sequence[str]) -> str:
    """Return what stands between the columns of lines that are not blank: a tab or a comma."""
    return "," if all("\t" not in line and "," in line for line in lines) else "\t"


def guess_layout(
    sample: Sequence[str],
    name: str,
    columns: Sequence[str] = (),
    task: StringTask | None = None,
    usual: Sequence[str] = (),
) -> Layout:
    """Return the layout of a table.

    Args:
        sample: its first lines, such as `SAMPLE` of them.
        name: of the file, for errors.
        columns: in the table's order; a heading names them otherwise, or they are guessed.
        task: of a model, whose columns the table has; the target may be missing.
        usual: columns of a table whose guess is unclear, if it has as many.

    Raises:
        TableError: the columns are unclear, or the table is empty.
    """
    lines = [line for line in sample if line.strip()]
    if not lines:
        raise TableError(f"{name}: no rows")
    layout = Layout((), guess_delimiter(lines))
    table = readable_cells(layout, lines)
    if not table:
        raise TableError(f"{name}: no tabs, and no row of a CSV file")
    first, below = table[0], table[1:]
    named = named_columns(first, below)
    if columns:
        if all(len(cells) != len(columns) for cells in table):
            raise TableError(
                f"{name}: {counted(_width(table), 'column')}, such as {' | '.join(first)!r}; "
                f"--columns names {len(columns)}: {', '.join(columns)}"
            )
        layout = replace(layout, columns=tuple(columns))
    elif task is not None:
        layout = _of_task(layout, task, named, table, name)
    elif named:
        layout = replace(layout, columns=named)
    else:  # a heading must not decide them
        layout = replace(layout, columns=_guess_columns(below or table, name, usual), guessed=True)
    if named or _is_heading(first, below, layout.columns):
        layout = replace(layout, heading=first)
    return layout


def readable_cells(layout: Layout, lines: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the columns of the lines that are rows; of others, reading tells the reason."""
    table = []
    for line in lines:
        with suppress(csv.Error):
            table.append(layout.cells(line))
    return table


def named_columns(first: Sequence[str], below: Sequence[Sequence[str]] = ()) -> tuple[str, ...]:
    """Return the columns that a heading names, or nothing if the first row is a row like others.

    A heading names the source, and the target or the tags. Rows below have neither its words among
    their tags nor, if it names no tags, those of a column that it does not name.

    Args:
        first: columns of the first row.
        below: columns of the others.
    """
    names = [re.sub(r"[\s_-]+", " ", cell.strip()).casefold() for cell in first]
    columns = [LEFT_OUT] * len(names)
    for column in NAMES:
        positions = [n for n, name in enumerate(names) if _column_of(name) == column]
        if not positions and column in (SOURCE, TARGET) and names.count("word") == 1:
            position = names.index("word")
            columns[position] = column
            names[position] = ""  # it is one column only
            continue
        if len(positions) > 1:
            positions = [n for n in positions if names[n] in _SUREST.get(column, ())]
        if len(positions) == 1:
            columns[positions[0]] = column
    if SOURCE not in columns or not {TARGET, TAGS} & set(columns):
        return ()
    if not below and TAGS not in columns:  # a single pair may be `word` and `form`
        return ()
    unlike = TAGS if TAGS in columns else LEFT_OUT
    for position, column in enumerate(columns):
        if column == unlike:
            words = _words(first[position])
            if any(words & _words(row[position]) for row in below if position < len(row)):
                return ()
    return tuple(columns)


def may_be_heading(source: str) -> bool:
    """Tell whether the only text of a row is one that headings have for the source."""
    name = source.strip().lower()
    return name == "word" or _column_of(name) == SOURCE


def _column_of(name: str) -> str | None:
    """Return the column that a name says, also in the plural."""
    return _COLUMN_OF.get(name) or _COLUMN_OF.get(name.removesuffix("s"))


def _words(cell: str) -> set[str]:
    """Return the words of a cell in lower case; tags are several."""
    return {word.strip() for word in re.split(r"[;,=|]", cell.casefold())} - {""}


def _is_heading(
    first: Sequence[str], below: Sequence[Sequence[str]], columns: Sequence[str]
) -> bool:
    """Tell whether the first row is a heading: of sources alone by its name, else by its tags.

    Tags tell in whatever language: no row below is like it. They are codes, in capitals or divided
    by `;`, `=` and brackets, and a heading has words; or it is in capitals, and sources and targets
    are not.
    """
    rows = [row for row in below if len(row) == len(columns)]
    if len(first) != len(columns) or not rows:
        return False
    if not {TARGET, TAGS} & set(columns):
        sources = columns.index(SOURCE)
        is_new = all(row[sources] != first[sources] for row in rows)
        return may_be_heading(first[sources]) and is_new
    if TAGS not in columns:
        return False
    position = columns.index(TAGS)
    tags = first[position].strip()
    others = [row[position].strip() for row in rows]
    if any(_words(tags) & _words(other) for other in others):
        return False
    if _column_of(tags.casefold()) == TAGS:
        return True
    if tags.upper() != tags:
        return _are_words(tags) and not any(map(_are_words, others))
    texts = [n for n, column in enumerate(columns) if column in (SOURCE, TARGET)]
    in_capitals = all(
        first[n].isupper() and _are_words(first[n].lower()) for n in (*texts, position)
    )
    return in_capitals and not any(row[n].isupper() for row in rows for n in texts)


def _are_words(text: str) -> bool:
    """Tell whether a text is words, which are not all in capitals."""
    return text.upper() != text and re.fullmatch(r"[^\W\d_]+([\s_-][^\W\d_]+)*", text) is not None


def _of_task(
    layout: Layout,
    task: StringTask,
    heading: Sequence[str],
    table: Sequence[Sequence[str]],
    name: str,
) -> Layout:
    """Return a layout with the columns of a task; the target or other columns may be missing."""
    columns = task.columns
    width = _width(table)
    needed = {SOURCE, *({TAGS} & set(columns))}
    if heading and needed <= set(heading):
        return replace(layout, columns=tuple(heading))
    without_target = tuple(column for column in columns if column != TARGET)
    used = tuple(column for column in columns if column != LEFT_OUT)
    used_without_target = tuple(column for column in used if column != TARGET)
    for candidate in (columns, without_target, used, used_without_target):
        if len(candidate) == width:
            return replace(layout, columns=candidate)
    raise TableError(
        f"{name}: {counted(width, 'column')}, not {len(columns)} ({', '.join(columns)}), or "
        f"{len(without_target)} without the target; --columns names those of this table"
    )


def _width(table: Sequence[Sequence[str]]) -> int:
    """Return the number of columns of most rows; of several, the largest."""
    widths = Counter(map(len, table))
    return max(widths, key=lambda width: (widths[width], width))


def _guess_columns(
    table: Sequence[Sequence[str]], name: str, usual: Sequence[str]
) -> tuple[str, ...]:
    """Return the columns of a table; the only one that is mostly `A;B`, `a=B` or `AB` has tags."""
    width = _width(table)
    rows = [cells for cells in table if len(cells) == width]
    if width == 2:
        return (SOURCE, TARGET)
    if width > 2:
        for pattern in _LIKE_TAGS:
            likely = [
                position
                for position, column in enumerate(zip(*rows, strict=True))
                if 2 * sum(bool(re.fullmatch(pattern, cell)) for cell in column) > len(rows)
            ]
            if len(likely) == 1 and likely[0] in (1, 2):
                columns = [SOURCE, TARGET, *[LEFT_OUT] * (width - 3)]
                columns.insert(likely[0], TAGS)
                return tuple(columns)
    if width == len(usual):
        return tuple(usual)
    if width == 1:
        raise TableError(f"{name}: no tabs, nor commas, divide columns, as in {rows[0][0]!r}")
    raise TableError(
        f"{name}: unclear what its {width} columns are, such as {' | '.join(rows[0])!r}; name "
        "them, such as --columns source,target,tags,- (- leaves a column out)"
    )


def guess_separator(texts: Sequence[str]) -> str:
    """Return a space if texts are symbols between spaces, as phones are; else nothing.

    Most texts must have at least two symbols, of three characters on average at most.
    """
    divided = [text.split(" ") for text in texts if text]
    several = sum(len(symbols) > 1 for symbols in divided)
    number = sum(map(len, divided))
    characters = sum(len(symbol) for symbols in divided for symbol in symbols)
    are_short = number > 0 and characters <= 3 * number
    return " " if are_short and 10 * several >= 9 * len(divided) else ""


def guess_tag_separator(texts: Sequence[str]) -> str:
    """Return a comma for tags such as `pos=V,tense=PST`, as in the task of 2016; else `;`."""
    commas = any("=" in text for text in texts) and not any(";" in text for text in texts)
    return "," if commas else ";"


# --- the language of a file ----------------------------------------------------------------------

_ENDINGS = re.compile(
    r"[._-](?:train(?:ing)?\d*(?:[._-](?:low|medium|high|sm|lg))?|small|large|trn|dev|develop\w*|"
    r"valid\w*|val|test|tst|"
    r"covered|uncovered|gold|task\d*|part\d*|tsv|csv|txt)$",
    re.IGNORECASE,
)


def language_of_file(name: str) -> str:
    """Return the language that the name of a file says: what its usual endings leave.

    `heb_unvoc.trn` is `heb_unvoc`, `vie_hanoi_test.covered.tsv` is `vie_hanoi`,
    `classical-syriac-train-low` is `classical-syriac`. Nothing if only endings are there, as in
    `train.tsv`.
    """
    rest = f"_{name}"  # so that a name that is an ending alone has a divider, too
    while True:
        shorter = _ENDINGS.sub("", rest)
        if shorter == rest:
            return rest[1:]
        rest = shorter
