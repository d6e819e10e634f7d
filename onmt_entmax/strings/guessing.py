"""Guess the layout of a table by its first rows; what was guessed is said."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence

from onmt_entmax.errors import counted
from onmt_entmax.strings.headings import is_heading, named_columns
from onmt_entmax.strings.tables import Layout, TableError, readable_cells
from onmt_entmax.strings.task import LEFT_OUT, SOURCE, TAGS, TARGET, StringTask

SAMPLE = 2000
"""Rows that a guess looks at"""

# What most tags of a table look like, tried in this order.
_LIKE_TAGS = (
    r".*;.*",  # V;PST
    r"\w+=.*",  # tense=PST
    r"(?=.*[A-Z])[A-Z0-9.+/(),{};|-]+",  # PST, or N|PL
)
# Of the column of tags, from 0: second in tables of SIGMORPHON 2016, third in UniMorph's.
_USUAL_POSITIONS = (1, 2)
# Symbols between spaces, such as phones, are at most so long on average; words are longer.
_LONGEST_SYMBOL = 3
_SHARE_DIVIDED = 0.9  # of texts with two symbols or more; shorter words have one phone
_SHARE_OF_WIDTH = 0.9  # of rows with equally many columns; the others are bad ones


def guess_delimiter(lines: Sequence[str]) -> str:
    """Return what stands between the columns of lines that are not blank.

    A tab, or, where no line has one, a comma or a semicolon: the one between the names of a
    heading, or one that every line has. Spreadsheets write semicolons where numbers have a decimal
    comma.
    """
    if not lines or any("\t" in line for line in lines):
        return "\t"
    tables = {sign: readable_cells(Layout((), sign), lines) for sign in ",;"}
    for sign, table in tables.items():
        if table and named_columns(table[0], table[1:]):
            return sign
    commas, semicolons = (all(sign in line for line in lines) for sign in ",;")
    if not (semicolons and _semicolons_divide_columns(tables[";"])):
        return "," if commas else "\t"
    # Both, as in `draw;drew;pos=V,tense=PST`: columns are equally many in more of the rows.
    are_commas_surer = _share_of_width(tables[","]) >= _share_of_width(tables[";"])
    return "," if commas and are_commas_surer else ";"


def _semicolons_divide_columns(table: Sequence[Sequence[str]]) -> bool:
    """Tell whether the cells between semicolons are columns, and not only tags.

    Tags alone do not make rows of one width, and in `draw drew V;PST`, whose columns no tabs
    divide, the first cell is several words.
    """
    words = sum(" " not in cells[0].strip() for cells in table)
    return 2 * words > len(table) and _share_of_width(table) > _SHARE_OF_WIDTH


def _share_of_width(table: Sequence[Sequence[str]]) -> float:
    """Return the share of the rows that have as many cells as most have."""
    width = _width(table)
    return sum(len(cells) == width for cells in table) / len(table)


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
    if len(lines) == 1 and "\r" in lines[0]:
        raise TableError(
            f"{name}: its lines end with CR alone, as on old Macs; save it with LF or CR LF"
        )
    delimiter = guess_delimiter(lines)
    table = readable_cells(Layout((), delimiter), lines)
    if not table:
        raise TableError(f"{name}: no tabs, and no row of a CSV file")
    first, below = table[0], table[1:]
    named = named_columns(first, below)
    if columns:
        _refuse_other_width(table, columns, name)
        chosen = tuple(columns)
    elif task is None and named:
        chosen = named
    else:
        chosen = _columns_before_empty_ones(table, named, task, name, usual)
    has_heading = bool(named) or is_heading(first, below, chosen)
    is_guess = not columns and task is None and not named
    return Layout(chosen, delimiter, heading=first if has_heading else (), guessed=is_guess)


def _columns_before_empty_ones(
    table: Sequence[Sequence[str]],
    named: Sequence[str],
    task: StringTask | None,
    name: str,
    usual: Sequence[str],
) -> tuple[str, ...]:
    """Return the columns of a table; if they are unclear, last ones without any text are left out.

    Args:
        table: cells of its rows.
        named: columns that the first row names; empty if it names none.
        task: of a model; None: the columns are guessed.
        name: of the file, for errors.
        usual: see `guess_layout`.

    Raises:
        TableError: the columns are unclear.
    """
    try:
        if task is not None:
            return _columns_for_task(task, named, _width(table), name)
        # Without the first row, since a heading must not decide them.
        return _guess_columns(table[1:] or table, name, usual)
    except TableError:
        width = _width(table)
        rows = [cells for cells in table if len(cells) == width]
        if width == 1 or any(cells[-1] for cells in rows):
            raise
        shorter = [cells[:-1] for cells in rows]
        return (*_columns_before_empty_ones(shorter, named, task, name, usual), LEFT_OUT)


def _refuse_other_width(table: Sequence[Sequence[str]], columns: Sequence[str], name: str) -> None:
    """Refuse columns that the user named if no row has as many.

    Raises:
        TableError: says how many columns the table has.
    """
    if any(len(cells) == len(columns) for cells in table):
        return
    raise TableError(
        f"{name}: {counted(_width(table), 'column')}, such as {' | '.join(table[0])!r}; "
        f"--columns names {len(columns)}: {', '.join(columns)}"
    )


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


def _columns_for_task(
    task: StringTask, heading: Sequence[str], width: int, name: str
) -> tuple[str, ...]:
    """Return the columns of a table for a model: those of its heading, else those of its task.

    The target may be missing, and so may all columns that training left out.

    Args:
        task: of the model.
        heading: columns that the first row names; empty if it names none.
        width: number of columns of the table.
        name: of the table, for the error.

    Raises:
        TableError: the table has another number of columns.
    """
    columns = task.columns
    needed = {SOURCE, TAGS} if task.has_tags else {SOURCE}
    if needed <= set(heading):
        return tuple(heading)
    without_target = _without(columns, TARGET)
    used = _without(columns, LEFT_OUT)
    for candidate in (columns, without_target, used, _without(used, TARGET)):
        if len(candidate) == width:
            return candidate
    raise TableError(
        f"{name}: {counted(width, 'column')}, not {len(columns)} ({', '.join(columns)}), or "
        f"{len(without_target)} without the target; --columns names those of this table"
    )


def _without(columns: Sequence[str], name: str) -> tuple[str, ...]:
    """Return columns without those of a name."""
    return tuple(column for column in columns if column != name)


def _width(table: Sequence[Sequence[str]]) -> int:
    """Return the number of columns of most rows; of several, the largest."""
    widths = Counter(map(len, table))
    return max(widths, key=lambda width: (widths[width], width))


def _guess_columns(
    table: Sequence[Sequence[str]], name: str, usual: Sequence[str]
) -> tuple[str, ...]:
    """Return the columns of a table.

    Args:
        table: cells of its rows, without a heading.
        name: of the file, for errors.
        usual: columns of a table whose guess is unclear, if it has as many.

    Raises:
        TableError: the columns are unclear.
    """
    width = _width(table)
    rows = [cells for cells in table if len(cells) == width]
    if width == 2:
        return (SOURCE, TARGET)
    position = _tags_position(rows) if width > 2 else None
    if position in _USUAL_POSITIONS:
        columns = [SOURCE, TARGET, *[LEFT_OUT] * (width - 3)]
        columns.insert(position, TAGS)
        return tuple(columns)
    if width == len(usual) and position is None:  # no tags elsewhere contradict the usual columns
        return tuple(usual)
    raise TableError(f"{name}: {_why_unclear(rows)}")


def _why_unclear(rows: Sequence[Sequence[str]]) -> str:
    """Return what keeps the columns of a table from being guessed, by a row of it."""
    first = rows[0]
    if len(first) == 1:
        example = next((text for (text,) in rows if not text.startswith((";", "#"))), first[0])
        return (
            f"no tabs, commas or semicolons divide columns, as in {example!r}; write a tab between "
            "them, and remove comments"
        )
    return (
        f"unclear what its {len(first)} columns are, such as {' | '.join(first)!r}; name them, "
        "such as --columns source,target,tags,- (- leaves a column out)"
    )


def _tags_position(rows: Sequence[Sequence[str]]) -> int | None:
    """Return which column has tags: the only one that mostly looks like them.

    A usual position counts first, then another. None if there is none, or several.
    """
    elsewhere = None
    for pattern in _LIKE_TAGS:
        likely = [
            position
            for position, column in enumerate(zip(*rows, strict=True))
            if 2 * sum(bool(re.fullmatch(pattern, cell)) for cell in column) > len(rows)
        ]
        if len(likely) != 1:
            continue
        (position,) = likely
        if position in _USUAL_POSITIONS:
            return position
        elsewhere = position
    return elsewhere


def guess_separator(texts: Sequence[str]) -> str:
    """Return a space if texts are symbols between spaces, as phones are; else nothing.

    Most texts must have at least two symbols, which are short on average.
    """
    divided = [text.split(" ") for text in texts if text]
    symbols = [symbol for symbols_of_text in divided for symbol in symbols_of_text]
    if not symbols:
        return ""
    several = sum(len(symbols_of_text) > 1 for symbols_of_text in divided)
    are_short = sum(map(len, symbols)) <= _LONGEST_SYMBOL * len(symbols)
    return " " if are_short and several >= _SHARE_DIVIDED * len(divided) else ""


def guess_tag_separator(texts: Sequence[str]) -> str:
    """Return a comma for tags such as `pos=V,tense=PST`, as in the task of 2016; else `;`.

    Tags such as `Case=Nom|Number=Sing`, as in Universal Dependencies, have `|` between them.
    """
    if any(";" in text for text in texts):
        return ";"
    if any("|" in text for text in texts):
        return "|"
    return "," if any("=" in text for text in texts) else ";"
