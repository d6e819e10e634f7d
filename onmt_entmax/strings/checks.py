"""Likely mistakes in tables, as sentences; a table with all of them is still read.

`prepare` prints them as warnings: `oddities` of each table, `unseen_languages` of all together, and
the note of `several_targets`. A check yields nothing for a table that it finds nothing in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from unicodedata import is_normalized

from onmt_entmax.errors import counted
from onmt_entmax.strings.column_names import columns_by_names
from onmt_entmax.strings.copying import PLACEHOLDERS
from onmt_entmax.strings.scripts import script_mixtures
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import Query, StringTask

_SPECIAL = ("<unk>", "<blank>", "<s>", "</s>")
_RESERVED = (*_SPECIAL, *PLACEHOLDERS)  # symbols of the model itself
_LISTED = 5  # rows of mixed scripts that are named
_EXAMPLES = 3  # targets of a query with several that are named
_LONGEST_PHONE = 3  # characters; a longer symbol is no phone
_NUMBER = re.compile(r"[\d.,+-]+")  # a tag such as 2 or 1,200; not V or 2SG
# A tag that several tags seem to be joined in, such as V|PST, V+PST or V, PST; not V, nor
# NOM(2, SG), whose separator stands within brackets.
_JOINED_TAGS = re.compile(r"[^(]*[^(\s][|, +]")

# Invisible characters: controls, zero-width spaces, soft hyphens, marks of direction. Not the
# joiners U+200C and U+200D, which Persian, languages of India and emoji need.
_INVISIBLE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\xad\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u2069\\ufeff]"
)

# A space that is not U+0020, such as the no-break space, which looks like it but divides no symbols
_OTHER_SPACE = re.compile("[\\xa0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000]")
_VARIANT = re.compile(r"(.+)\(\d+\)")  # WORD(2), as pronouncing dictionaries number another target


def oddities(rows: Sequence[Row], task: StringTask) -> Iterator[str]:
    """Return what is likely a mistake in the rows of one table."""
    return chain(
        _outer_spaces(rows),
        _invisible_characters(rows),
        _other_spaces(rows),
        _numbered_variants(rows),
        _missing_tags(rows),
        _numbers_as_tags(rows),
        _undivided_tags(rows),
        _headings(rows, task),
        _decomposed_characters(rows),
        _reserved_symbols(rows, task),
        _mixed_scripts(rows, task),
        _repeated_rows(rows),
    )


def several_targets(rows: Sequence[Row]) -> str:
    """Return a note on the queries of rows that have several targets; nothing without any."""
    targets: dict[Query, dict[str, None]] = {}  # inner ones are ordered sets
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


def unseen_languages(rows: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Yield the languages of each split that the training rows lack, and those that dev lacks.

    Args:
        rows: of each split; without one named `train`, nothing is yielded.
    """
    languages = {
        split: {row.query.language for row in split_rows} for split, split_rows in rows.items()
    }
    trained = languages.pop("train", None)
    if trained is None:
        return
    unmeasured = sorted(trained - languages.get("dev", trained))
    if unmeasured:
        yield (
            f"dev: languages of the training rows that it lacks: {', '.join(unmeasured)}; they "
            "have no part in the choice of the checkpoint"
        )
    for split, split_languages in languages.items():
        unseen = sorted(split_languages - trained)
        if unseen:
            yield (
                f"{split}: languages that the training rows lack: {', '.join(unseen)}; these have "
                f"{', '.join(sorted(trained))}"
            )


def _outer_spaces(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how many texts begin or end with a space."""
    texts = [text for row in rows for text in (row.query.source, row.target, *row.query.tags)]
    spaced = sum(text != text.strip() for text in texts)
    if spaced:
        yield f"spaces around sources, targets or tags, which a model learns: {spaced:,}"


def _invisible_characters(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the rows with an invisible character, such as a zero-width space."""
    hidden, example = _rows_with(_INVISIBLE, rows)
    if hidden:
        yield (
            f"rows with invisible characters, such as {example}, which a model "
            f"learns: {_share(hidden, rows)}"
        )


def _other_spaces(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the rows with a space that is not U+0020."""
    spaced, example = _rows_with(_OTHER_SPACE, rows)
    if spaced:
        yield (
            f"rows with a space that is not U+0020, such as {example}, which is a "
            f"symbol and divides none: {_share(spaced, rows)}"
        )


def _rows_with(character: re.Pattern[str], rows: Sequence[Row]) -> tuple[list[Row], str]:
    """Return the rows whose source or target has a character, and the first one as `U+200B`."""
    found = [
        (row, match[0])
        for row in rows
        if (match := character.search(f"{row.query.source}{row.target}"))
    ]
    return [row for row, _ in found], f"U+{ord(found[0][1]):04X}" if found else ""


def _numbered_variants(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the rows whose source is that of another row and a number in brackets."""
    sources = {row.query.source for row in rows}
    variants = [
        row
        for row in rows
        if (match := _VARIANT.fullmatch(row.query.source)) and match[1] in sources
    ]
    if variants:
        yield (
            f"sources with a number, such as {variants[0].query.source!r}, which are there without "
            f"it, too: {_share(variants, rows)}; if they are variants, leave the numbers out: a "
            "source may have several targets"
        )


def _missing_tags(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the rows without tags, where others have some."""
    untagged = [row for row in rows if not row.query.tags]
    if untagged and len(untagged) < len(rows):
        yield f"rows without tags: {_share(untagged, rows)}"


def _numbers_as_tags(rows: Sequence[Row]) -> Iterator[str]:
    """Yield that most tags are numbers, as in a column of counts."""
    tagged = _tagged(rows)
    numbers = [row for row in tagged if all(_NUMBER.fullmatch(tag) for tag in row.query.tags)]
    if 2 * len(numbers) > len(tagged):
        yield (
            f"tags that are numbers, such as {';'.join(numbers[0].query.tags)!r}: "
            f"{counted(len(numbers), 'row')} of {len(rows):,}; if they are counts, leave the "
            "column out (- in --columns)"
        )


def _undivided_tags(rows: Sequence[Row]) -> Iterator[str]:
    """Yield that no row has several tags, and most single ones look like several."""
    tagged = _tagged(rows)
    if any(len(row.query.tags) > 1 for row in tagged):
        return
    joined = [row.query.tags[0] for row in tagged if _JOINED_TAGS.match(row.query.tags[0])]
    if 2 * len(joined) > len(tagged):
        yield f"no separator divides tags: {joined[0]!r} is one tag; --separator tags=X names it"


def _tagged(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that have tags."""
    return [row for row in rows if row.query.tags]


def _headings(rows: Sequence[Row], task: StringTask) -> Iterator[str]:
    """Yield rows that are likely headings, as between tables that were joined."""
    headings = [
        row
        for position, row in enumerate(rows)
        if _names_columns(row) or (position == 0 and _is_word_above_phones(rows, task))
    ]
    if headings:
        cells = ", ".join(map(repr, headings[0].cells))
        yield f"rows that may be headings: {_share(headings, rows)}, {cells}; they are read as rows"


def _names_columns(row: Row) -> bool:
    """Whether the cells of a row name columns; of line 1, the reader of the table has decided."""
    return row.number > 1 and bool(columns_by_names(row.cells))


def _is_word_above_phones(rows: Sequence[Row], task: StringTask) -> bool:
    """Whether the first target is one long symbol that no other row has, such as `Aussprache`."""
    first, *others = rows
    if not others or task.target.kind != "symbols" or len(first.target) <= _LONGEST_PHONE:
        return False
    is_one_symbol = len(task.target.split(first.target)) == 1
    return is_one_symbol and all(
        first.target not in task.target.split(row.target) for row in others
    )


def _decomposed_characters(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the rows that Unicode's normal form NFC would change, such as `e` and U+0301."""
    decomposed = [
        row for row in rows if not is_normalized("NFC", f"{row.query.source}\t{row.target}")
    ]
    if decomposed:
        yield (
            f"rows that are not in Unicode's normal form NFC: {_share(decomposed, rows)}; letters "
            "and their marks are separate tokens there; normalise the file, or write queries so too"
        )


def _reserved_symbols(rows: Sequence[Row], task: StringTask) -> Iterator[str]:
    """Yield the rows with a symbol that is the model's own, such as `<unk>`."""
    reserved = [row for row in rows if _has_reserved(row, task)]
    if reserved:
        yield (
            f"rows with a symbol of the model itself ({', '.join(_SPECIAL)} or <copyN>): "
            f"{_share(reserved, rows)}; write another symbol, which outputs can be told from"
        )


def _has_reserved(row: Row, task: StringTask) -> bool:
    """Whether a row has a symbol that is the model's own.

    Among symbols, it is one of them. Among characters, which cannot be such a symbol, it is a text
    that another program left.
    """
    for unit, text in ((task.source, row.query.source), (task.target, row.target)):
        if "<" not in text:  # nearly all rows; dividing them takes time
            continue
        symbols = text if unit.kind == "characters" else unit.split(text)
        if any(symbol in symbols for symbol in _RESERVED):
            return True
    return False


def _mixed_scripts(rows: Sequence[Row], task: StringTask) -> Iterator[str]:
    """Yield the rows whose words mix scripts. Symbols may mix them: phonetic alphabets do."""
    checks_source = task.source.kind == "characters"
    checks_target = task.target.kind == "characters"
    if not checks_source and not checks_target:
        return
    words = [
        (row.query.source if checks_source else "", row.target if checks_target else "")
        for row in rows
    ]
    mixed = script_mixtures(words)
    if not mixed:
        return
    listed = [
        f"line {rows[position].number}, {text}" for position, text in islice(mixed.items(), _LISTED)
    ]
    if len(mixed) > _LISTED:
        listed.append(f"and {len(mixed) - _LISTED:,} more (onmt-entmax audit lists all)")
    yield f"rows that mix scripts: {len(mixed):,} of {len(rows):,}: {'; '.join(listed)}"


def _repeated_rows(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how many rows are equal to earlier ones, and the most frequent of them."""
    pairs = Counter((row.query, row.target) for row in rows)
    if len(pairs) < len(rows):
        query, target = pairs.most_common(1)[0][0]
        yield (
            f"rows that are there before: {len(rows) - len(pairs):,} of {len(rows):,}, such as "
            f"{query.source!r}, {target!r}"
        )


def _share(odd: Sequence[Row], rows: Sequence[Row]) -> str:
    """Return how many rows are odd, and the first of them."""
    return f"{len(odd):,} of {len(rows):,}, such as line {odd[0].number}"
