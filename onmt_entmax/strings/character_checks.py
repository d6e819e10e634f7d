"""Check the characters of tables: spaces, invisible characters, normal forms, mixed scripts.

Each check yields a sentence if it finds a likely mistake; `checks.oddities` calls them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from unicodedata import is_normalized

from onmt_entmax.strings.copying import PLACEHOLDERS
from onmt_entmax.strings.scripts import script_mixtures
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import StringTask

_SPECIAL = ("<unk>", "<blank>", "<s>", "</s>")
_RESERVED = (*_SPECIAL, *PLACEHOLDERS)  # symbols of the model itself
_LISTED = 5  # rows with mixed scripts that the sentence names

# Invisible characters: controls, zero-width spaces, soft hyphens, the combining grapheme joiner
# U+034F, which tables of SIGMORPHON 2021 have, and marks of direction. The joiners U+200C and
# U+200D are not among them, since Persian, languages of India and emoji need them.
_INVISIBLE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\xad\\u034f\\u061c\\u200b\\u200e\\u200f\\u202a-\\u202e"
    "\\u2060-\\u2069\\ufeff]"
)

# A space that is not U+0020, such as the no-break space. It looks the same, but divides no symbols.
_OTHER_SPACE = re.compile("[\\xa0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000]")


def outer_spaces(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence on texts that begin or end with a space."""
    texts = [text for row in rows for text in (row.query.source, row.target, *row.query.tags)]
    spaced = sum(text != text.strip() for text in texts)
    if spaced:
        yield f"spaces around sources, targets or tags, which a model learns: {spaced:,}"


def invisible_characters(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence on rows with an invisible character, such as a zero-width space."""
    hidden, example = _rows_with(_INVISIBLE, rows)
    if hidden:
        yield (
            f"rows with invisible characters, such as {example}, which a model "
            f"learns: {share(hidden, rows)}"
        )


def other_spaces(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence on rows with a space that is not U+0020."""
    spaced, example = _rows_with(_OTHER_SPACE, rows)
    if spaced:
        yield (
            f"rows with a space that is not U+0020, such as {example}, which is a "
            f"symbol and divides none: {share(spaced, rows)}"
        )


def _rows_with(character: re.Pattern[str], rows: Sequence[Row]) -> tuple[list[Row], str]:
    """Return the rows whose source or target has a character, and the first one as `U+200B`."""
    found = [
        (row, match[0])
        for row in rows
        if (match := character.search(f"{row.query.source}{row.target}"))
    ]
    return [row for row, _ in found], f"U+{ord(found[0][1]):04X}" if found else ""


def decomposed_characters(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence on rows that Unicode's normal form NFC changes: `e` and U+0301 to `é`."""
    decomposed = [
        row for row in rows if not is_normalized("NFC", f"{row.query.source}\t{row.target}")
    ]
    if decomposed:
        yield (
            f"rows that are not in Unicode's normal form NFC: {share(decomposed, rows)}; letters "
            "and their marks are separate tokens there; normalise the file, or write queries so too"
        )


def reserved_symbols(rows: Sequence[Row], task: StringTask) -> Iterator[str]:
    """Yield a sentence on rows with a symbol that is the model's own, such as `<unk>`."""
    reserved = [row for row in rows if _has_reserved(row, task)]
    if reserved:
        yield (
            f"rows with a symbol of the model itself ({', '.join(_SPECIAL)} or <copyN>): "
            f"{share(reserved, rows)}; write another symbol, which outputs can be told from"
        )


def _has_reserved(row: Row, task: StringTask) -> bool:
    """Return whether a row has a symbol that is the model's own.

    Such a symbol may be a unit. It is longer than a single character, but another program may have
    left characters that spell it.
    """
    for unit, text in ((task.source, row.query.source), (task.target, row.target)):
        if "<" not in text:  # nearly all rows; dividing them takes time
            continue
        symbols = text if unit.kind == "characters" else unit.split(text)
        if any(symbol in symbols for symbol in _RESERVED):
            return True
    return False


def mixed_scripts(rows: Sequence[Row], task: StringTask) -> Iterator[str]:
    """Yield a sentence on rows whose words mix scripts.

    Only characters are checked: symbols may mix scripts, as phonetic alphabets do.
    """
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


def share(odd: Sequence[Row], rows: Sequence[Row]) -> str:
    """Return how many rows are odd, and the first of them."""
    return f"{len(odd):,} of {len(rows):,}, such as line {odd[0].number}"
