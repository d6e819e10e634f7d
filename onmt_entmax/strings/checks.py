"""Likely mistakes in tables, as sentences; a table with all of them is still read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from unicodedata import is_normalized

from onmt_entmax.errors import counted
from onmt_entmax.strings.copying import PLACEHOLDERS
from onmt_entmax.strings.headings import named_columns
from onmt_entmax.strings.scripts import mixtures
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import Query, StringTask

RESERVED = ("<unk>", "<blank>", "<s>", "</s>", *PLACEHOLDERS)
"""Symbols of the model itself"""
_LISTED = 5  # rows of mixed scripts that are named
_LONG = 4  # characters of a symbol that no phone has


def oddities(rows: Sequence[Row], task: StringTask) -> Iterator[str]:
    """Yield what is likely a mistake in the rows of one table."""
    if not rows:
        return
    texts = [text for row in rows for text in (row.query.source, row.target, *row.query.tags)]
    spaced = sum(text != text.strip() for text in texts)
    if spaced:
        yield f"spaces around sources, targets or tags, which a model learns: {spaced:,}"
    yield from _odd_tags(rows)
    yield from _headings(rows, task)
    decomposed = [
        row for row in rows if not is_normalized("NFC", f"{row.query.source}\t{row.target}")
    ]
    if decomposed:
        yield (
            f"rows that are not in Unicode's normal form NFC: {_share(decomposed, rows)}; letters "
            "and their marks are separate tokens there; normalise the file, or write queries so too"
        )
    reserved = [row for row in rows if _has_reserved(row, task)]
    if reserved:
        yield (
            f"rows with a symbol of the model itself ({', '.join(RESERVED[:4])} or <copyN>): "
            f"{_share(reserved, rows)}; write another symbol, which outputs can be told from"
        )
    yield from _mixed_scripts(rows, task)
    pairs = Counter((row.query, row.target) for row in rows)
    if len(pairs) < len(rows):
        query, target = pairs.most_common(1)[0][0]
        yield (
            f"rows that are there before: {len(rows) - len(pairs):,} of {len(rows):,}, such as "
            f"{query.source!r}, {target!r}"
        )


def _mixed_scripts(rows: Sequence[Row], task: StringTask) -> Iterator[str]:
    """Yield the rows whose words mix scripts; symbols are not words: phonetic alphabets do so."""
    checks_source = task.source.kind == "characters"
    checks_target = task.target.kind == "characters"
    if not checks_source and not checks_target:
        return
    words = [
        (row.query.source if checks_source else "", row.target if checks_target else "")
        for row in rows
    ]
    mixed = mixtures(words)
    if not mixed:
        return
    listed = [
        f"line {rows[number].number}, {text}" for number, text in islice(mixed.items(), _LISTED)
    ]
    if len(mixed) > _LISTED:
        listed.append(f"and {len(mixed) - _LISTED:,} more (onmt-entmax audit lists all)")
    yield f"rows that mix scripts: {len(mixed):,} of {len(rows):,}: {'; '.join(listed)}"


def several_targets(rows: Sequence[Row]) -> str:
    """Return a note on the queries of rows that have several targets; nothing without any."""
    targets: dict[Query, dict[str, None]] = {}
    for row in rows:
        targets.setdefault(row.query, {})[row.target] = None
    several = [(query, forms) for query, forms in targets.items() if len(forms) > 1]
    if not several:
        return ""
    query, first = several[0]
    return (
        f"queries with several targets: {len(several):,} of {len(targets):,}, such as "
        f"{query.source!r} with {', '.join(map(repr, islice(first, 3)))}; any of them counts as "
        "right"
    )


def unseen_languages(rows: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Yield the languages of each split that the training rows lack, and those that dev lacks.

    Args:
        rows: of each split.
    """
    languages = {
        split: {row.query.language for row in split_rows} for split, split_rows in rows.items()
    }
    trained = languages.pop("train", None)
    if trained is None:
        return
    unmeasured = sorted(trained - languages["dev"]) if "dev" in languages else []
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


def _share(odd: Sequence[Row], rows: Sequence[Row]) -> str:
    """Return how many rows are odd, and the first of them."""
    return f"{len(odd):,} of {len(rows):,}, such as line {odd[0].number}"


def _odd_tags(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what is likely wrong with tags."""
    tagged = [row for row in rows if row.query.tags]
    if not tagged:
        return
    if len(tagged) < len(rows):
        untagged = [row for row in rows if not row.query.tags]
        yield f"rows without tags: {_share(untagged, rows)}"
    numbers = [
        row for row in tagged if all(re.fullmatch(r"[\d.,+-]+", tag) for tag in row.query.tags)
    ]
    if 2 * len(numbers) > len(tagged):
        yield (
            f"tags that are numbers, such as {';'.join(numbers[0].query.tags)!r}: "
            f"{counted(len(numbers), 'row')} of {len(rows):,}; if they are counts, leave the "
            "column out (- in --columns)"
        )
    first_tags = [row.query.tags[0] for row in tagged]
    joined = [tag for tag in first_tags if re.match(r"[^(]*[^(\s][|, ]", tag)]
    if 2 * len(joined) > len(tagged) and all(len(row.query.tags) == 1 for row in tagged):
        yield f"no separator divides tags: {joined[0]!r} is one tag; --separator tags=X names it"


def _headings(rows: Sequence[Row], task: StringTask) -> Iterator[str]:
    """Yield rows that are likely headings, as between tables that were joined."""
    first = rows[0]
    named = [row for row in rows if row.number > 1 and named_columns(row.cells, [()])]
    symbols = task.target.split(first.target)
    single = task.target.kind == "symbols" and len(symbols) == 1 and len(first.target) >= _LONG
    if single and all(first.target not in task.target.split(row.target) for row in rows[1:]):
        named.insert(0, first)
    if named:
        cells = ", ".join(map(repr, named[0].cells))
        yield f"rows that may be headings: {_share(named, rows)}, {cells}; they are read as rows"


def _has_reserved(row: Row, task: StringTask) -> bool:
    """Whether a row has a symbol that is the model's own: as a unit, or left by other programs."""
    texts = (task.source, row.query.source), (task.target, row.target)
    return any(
        "<" in text and symbol in (text if unit.kind == "characters" else unit.split(text))
        for unit, text in texts
        for symbol in RESERVED
    )
