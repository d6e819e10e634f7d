"""Guess the layout of a table by its first rows; what was guessed is said."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

from onmt_entmax.errors import counted
from onmt_entmax.strings.tables import Layout, TableError, readable_cells
from onmt_entmax.strings.task import (
    LANGUAGE_COLUMN,
    LEFT_OUT,
    SOURCE,
    TAGS,
    TARGET,
    StringTask,
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
