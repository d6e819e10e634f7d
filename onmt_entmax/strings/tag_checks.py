"""Check the tags of rows: whether they are there, divided, no numbers, and in one order.

Each check yields a sentence if it finds a likely mistake; `checks.oddities` calls them all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from onmt_entmax.errors import counted
from onmt_entmax.strings.character_checks import share
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import Query

NUMBER = re.compile(r"[\d.,+-]+")
"""A cell or tag such as 2 or 1,200; not V or 2SG"""
# A tag that looks like several joined ones, such as V|PST, V+PST or V, PST, or with a sign that
# looks like a semicolon: Greek (U+037E), Arabic or full-width. V does not, nor does NOM(2, SG),
# where the separator stands within brackets.
_JOINED_TAGS = re.compile("[^(]*[^(\\s][|, +\u037e\u061b\uff1b]")


def missing_tags(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence on rows without tags, if other rows have some."""
    untagged = [row for row in rows if not row.query.tags]
    if untagged and len(untagged) < len(rows):
        yield f"rows without tags: {share(untagged, rows)}"


def numbers_as_tags(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence if most tags are numbers, as in a column of counts."""
    tagged = _tagged(rows)
    numbers = [row for row in tagged if all(NUMBER.fullmatch(tag) for tag in row.query.tags)]
    if 2 * len(numbers) > len(tagged):
        yield (
            f"tags that are numbers, such as {';'.join(numbers[0].query.tags)!r}: "
            f"{counted(len(numbers), 'row')} of {len(rows):,}; if they are counts, leave the "
            "column out (- in --columns)"
        )


def undivided_tags(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence if no row has several tags, but most tags look like several joined ones."""
    tagged = _tagged(rows)
    if any(len(row.query.tags) > 1 for row in tagged):
        return
    joined = [row.query.tags[0] for row in tagged if _JOINED_TAGS.match(row.query.tags[0])]
    if 2 * len(joined) > len(tagged):
        yield f"no separator divides tags: {joined[0]!r} is one tag; --separator tags=X names it"


def reordered_tags(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence on rows whose tags most rows of the language have in another order."""
    counts = Counter((row.query.language, row.query.tags) for row in rows)
    usual: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}  # orders, by the sorted tags
    usual_of: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}  # those of other orders
    for (language, tags), _ in counts.most_common():
        order = usual.setdefault((language, tuple(sorted(tags))), tags)
        if order != tags:
            usual_of[language, tags] = order
    reordered = [row for row in rows if (row.query.language, row.query.tags) in usual_of]
    queries = [
        row.query._replace(tags=usual_of[row.query.language, row.query.tags]) for row in reordered
    ]
    if reordered and not _have_other_targets(reordered, queries, rows):
        yield (
            "rows with tags in another order than in most rows, which is another query: "
            f"{share(reordered, rows)}, {';'.join(reordered[0].query.tags)!r} for "
            f"{';'.join(queries[0].tags)!r}"
        )


def _have_other_targets(odd: Sequence[Row], queries: Sequence[Query], rows: Sequence[Row]) -> bool:
    """Return whether most odd rows have another target than their usual query, if that has a row.

    Then the order of the tags has a meaning, such as `1;SG;3;PL` for a subject and an object.

    Args:
        odd: rows with tags in another order than in most rows.
        queries: for each of them, its query with the usual order.
        rows: all rows.
    """
    wanted = set(queries)
    targets: dict[Query, set[str]] = {}
    for row in rows:
        if row.query in wanted:
            targets.setdefault(row.query, set()).add(row.target)
    are_other = [
        row.target not in targets[query]
        for row, query in zip(odd, queries, strict=True)
        if query in targets
    ]
    return 2 * sum(are_other) > len(are_other)


def _tagged(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that have tags."""
    return [row for row in rows if row.query.tags]
