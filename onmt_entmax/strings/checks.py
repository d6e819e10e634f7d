"""Check tables for likely mistakes; each check yields a sentence if it finds one.

`prepare` prints the `oddities` of each table as warnings, and `several_targets` as a note.
`character_checks` has the checks of single characters, `tag_checks` those of tags, and
`heading_checks` those of headings. `split_checks` compares tables. A table with likely mistakes is
read all the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from onmt_entmax.strings.character_checks import (
    decomposed_characters,
    invisible_characters,
    mixed_scripts,
    other_spaces,
    outer_spaces,
    reserved_symbols,
    share,
)
from onmt_entmax.strings.guessed_columns import tags_position
from onmt_entmax.strings.guessing import SAMPLE
from onmt_entmax.strings.heading_checks import likely_headings
from onmt_entmax.strings.tables import Layout, Row
from onmt_entmax.strings.tag_checks import (
    NUMBER,
    missing_tags,
    numbers_as_tags,
    reordered_tags,
    undivided_tags,
)
from onmt_entmax.strings.task import LEFT_OUT, TAGS, Query, StringTask

_EXAMPLES = 3  # targets that a note names, of a query with several
# What people write where a form does not exist. Lower-case `nan`, `null` and `none` may be words.
_NO_TARGETS = frozenset("- – — _ ? * . / NA N/A #N/A NaN NULL None".split())
_VARIANT = re.compile(r"(.+)\(\d+\)")  # WORD(2), as pronouncing dictionaries number another target


def oddities(rows: Sequence[Row], task: StringTask) -> Iterator[str]:
    """Return a sentence for each kind of likely mistake in the rows of one table."""
    return chain(
        outer_spaces(rows),
        invisible_characters(rows),
        other_spaces(rows),
        _numbered_variants(rows),
        _quoted_cells(rows),
        _missing_targets(rows),
        missing_tags(rows),
        numbers_as_tags(rows),
        undivided_tags(rows),
        reordered_tags(rows),
        likely_headings(rows, task),
        decomposed_characters(rows),
        reserved_symbols(rows, task),
        mixed_scripts(rows, task),
        _repeated_rows(rows),
    )


def left_out_tags(rows: Sequence[Row], layout: Layout) -> Iterator[str]:
    """Yield a sentence if columns of tags seem to be left out, and no other is read as tags.

    An example is `Merkmale` beside `lemma` and `form`: the heading names columns, but no tags.
    Another is a table with a column for each kind of tag, such as `lemma`, `form`, `case`,
    `number`.
    """
    if TAGS in layout.columns or not rows:
        return
    position = tags_position([row.cells for row in rows[:SAMPLE]])
    if position is not None and _looks_like_left_out_tags(rows, position, layout):
        yield (
            f"{_column_text(position, layout)} is left out, but looks like tags, such as "
            f"{rows[0].cells[position]!r}; {_option_for_tags(position, layout)} reads them"
        )
        return
    positions = _choosing_columns(rows, layout)
    if len(positions) == 1:
        (position,) = positions
        yield (
            f"{_column_text(position, layout)} is left out, but says which target of a source is "
            f"meant; {_option_for_tags(position, layout)} reads it as tags"
        )
    elif positions:
        listed = " and ".join(_column_text(position, layout) for position in positions)
        yield (
            f"{listed} are left out, but say which target of a source is meant; to train with "
            "them, join them to one column of tags, such as `NOM;PL`"
        )


def _looks_like_left_out_tags(rows: Sequence[Row], position: int, layout: Layout) -> bool:
    """Return whether a column that looks like tags is left out, and is likely to be tags."""
    if layout.columns[position] != LEFT_OUT:
        return False
    return _has_several_tags(rows, position) or _may_choose_targets(rows, position)


def _column_text(position: int, layout: Layout) -> str:
    """Return the number of a column, and its name if the table has a heading."""
    named = f" ({layout.cells_above[position]!r})" if layout.cells_above else ""
    return f"column {position + 1}{named}"


def _option_for_tags(position: int, layout: Layout) -> str:
    """Return the option `--columns` that reads a column as tags."""
    columns = [TAGS if n == position else name for n, name in enumerate(layout.columns)]
    return f"--columns {','.join(columns)}"


def _choosing_columns(rows: Sequence[Row], layout: Layout) -> list[int]:
    """Return the positions of left-out columns that together tell targets of a source apart.

    There are none unless most sources have several targets, and most of these only one for each
    combination of the columns' cells. Columns of numbers do not count, nor those in which cells
    hardly repeat, such as remarks.
    """
    positions = [
        position
        for position, name in enumerate(layout.columns)
        if name == LEFT_OUT and _may_be_kind_of_tag([row.cells[position] for row in rows])
    ]
    if not positions:
        return []
    targets: dict[Query, set[str]] = {}
    chosen: dict[tuple[Query, tuple[str, ...]], set[str]] = {}
    for row in rows:
        targets.setdefault(row.query, set()).add(row.target)
        key = row.query, tuple(row.cells[position] for position in positions)
        chosen.setdefault(key, set()).add(row.target)
    several = {query for query, forms in targets.items() if len(forms) > 1}
    still_several = {query for (query, _), forms in chosen.items() if len(forms) > 1}
    if 2 * len(several) <= len(targets) or 2 * len(still_several) >= len(several):
        return []
    return positions


def _may_be_kind_of_tag(cells: Sequence[str]) -> bool:
    """Return whether the cells of a column repeat, differ, and are no numbers."""
    different = set(cells) - {""}
    numbers = sum(NUMBER.fullmatch(cell) is not None for cell in different)
    return 1 < len(different) <= len(cells) / 2 and 2 * numbers < len(different)


def _has_several_tags(rows: Sequence[Row], position: int) -> bool:
    """Return whether most cells of a column have several tags (`V;PST`) or name one (`pos=V`)."""
    marked = sum(";" in row.cells[position] or "=" in row.cells[position] for row in rows)
    return 2 * marked > len(rows)


def _may_choose_targets(rows: Sequence[Row], position: int) -> bool:
    """Return whether a column of codes may say which of several targets of a source is meant.

    Country codes and numbers of rows look like tags, too. But most tags stand in several rows, and
    some source stands in several rows with different tags.
    """
    codes_of: dict[Query, set[str]] = {}
    for row in rows:
        codes_of.setdefault(row.query, set()).add(row.cells[position])
    codes = set().union(*codes_of.values())
    return 2 * len(codes) <= len(rows) and any(len(each) > 1 for each in codes_of.values())


def several_targets(rows: Sequence[Row]) -> str:
    """Return a note on queries that have several targets; an empty text if none has."""
    targets: dict[Query, dict[str, None]] = {}  # the inner dicts are ordered sets
    for row in rows:
        targets.setdefault(row.query, {})[row.target] = None
    several = {query: forms for query, forms in targets.items() if len(forms) > 1}
    if not several:
        return ""
    query, forms = next(iter(several.items()))
    examples = ", ".join(map(repr, islice(forms, _EXAMPLES)))
    return (
        f"queries with several targets: {len(several):,} of {len(targets):,}, such as "
        f"{query.source!r} with {examples}; any of them counts as right"
    )


def _numbered_variants(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence on sources such as `WORD(2)`, if `WORD` is a source, too."""
    sources = {row.query.source for row in rows}
    variants = [
        row
        for row in rows
        if (match := _VARIANT.fullmatch(row.query.source)) and match[1] in sources
    ]
    if variants:
        yield (
            f"sources with a number, such as {variants[0].query.source!r}, which are there without "
            f"it, too: {share(variants, rows)}; if they are variants, leave the numbers out: a "
            "source may have several targets"
        )


def _quoted_cells(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence on rows with cells in quotes, as spreadsheets write them.

    Source and target are in quotes, or one of them because it has a comma or a quote itself.
    Between commas, such quotes are no part of a cell; between tabs, they are.
    """
    quoted = []
    for row in rows:
        within = [
            text[1:-1]
            for text in (row.query.source, row.target)
            if len(text) > 1 and text[0] == text[-1] == '"'
        ]
        if len(within) == 2 or any("," in text or '""' in text for text in within):
            quoted.append(row)
    if quoted:
        yield (
            f"rows in quotes, which a model learns: {share(quoted, rows)}; write the table without "
            "quotes, or with commas between its columns"
        )


def _missing_targets(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence on targets such as `-`, which may mean that there is no target.

    A target of a single source, or one that is equal to its source, may be a word.
    """
    sources: dict[str, set[str]] = {}  # by target
    for row in rows:
        if row.target in _NO_TARGETS and row.target != row.query.source:
            sources.setdefault(row.target, set()).add(row.query.source)
    missing = [row for row in rows if len(sources.get(row.target, ())) > 1]
    if missing:
        yield (
            f"rows with the target {missing[0].target!r}, which a model learns: "
            f"{share(missing, rows)}; if these have no target, leave them out"
        )


def _repeated_rows(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence on rows that repeat earlier ones; it names the most frequent."""
    pairs = Counter((row.query, row.target) for row in rows)
    if len(pairs) < len(rows):
        query, target = pairs.most_common(1)[0][0]
        yield (
            f"rows that repeat earlier ones: {len(rows) - len(pairs):,} of {len(rows):,}, such as "
            f"{query.source!r}, {target!r}"
        )
