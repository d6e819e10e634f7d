"""Compare the rows of dev and test tables with those of training.

`prepare` prints the `differences` as warnings, and `new_combinations` as a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, islice

from onmt_entmax.strings.cells import Combinations
from onmt_entmax.strings.languages import known_as
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import StringTask

_LISTED = 5  # tags that are named

Tags = tuple[str, ...]
Splits = Mapping[str, Sequence[Row]]
"""The rows of each split"""


def differences(rows: Splits, task: StringTask) -> Iterator[str]:
    """Return a sentence for each likely mistake; without a split `train`, there is none."""
    if "train" not in rows:
        return iter(())
    return chain(
        _equal_languages(rows),
        _unseen_languages(rows),
        _differing_tags(rows),
        _unseen_symbols(rows, task),
    )


def _equal_languages(rows: Splits) -> Iterator[str]:
    """Yield a sentence on each language with several names, such as `german` and `deu`."""
    names: dict[str, list[str]] = {}  # by one of them
    for name in sorted({row.query.language for split_rows in rows.values() for row in split_rows}):
        for known in names:
            if known_as(name.casefold(), {known}) == known:
                names[known].append(name)
                break
        else:
            names[name.casefold()] = [name]
    for equal in names.values():
        if len(equal) > 1:
            yield f"{' and '.join(equal)} are different languages here; give them one name"


def _unseen_languages(rows: Splits) -> Iterator[str]:
    """Yield sentences on languages that the training rows lack, and on those that dev lacks."""
    languages = {
        split: {row.query.language for row in split_rows} for split, split_rows in rows.items()
    }
    trained = languages.pop("train")
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


def _differing_tags(rows: Splits) -> Iterator[str]:
    """Yield sentences on tags that the training rows lack, or have in another order."""
    trained = dict.fromkeys(row.query.tags for row in rows["train"])  # an ordered set
    for split, split_rows in rows.items():
        tags = [row.query.tags for row in split_rows]
        yield from _unseen_tags(split, tags, trained)
        yield from _reordered_tags(split, tags, trained)


def _unseen_tags(
    split: str, split_tags: Sequence[Tags], trained: Collection[Tags]
) -> Iterator[str]:
    """Yield a sentence on single tags that the training rows lack.

    Args:
        split: name of the split.
        split_tags: the tags of each of its rows.
        trained: the tags of the training rows.
    """
    known = {tag for tags in trained for tag in tags}
    unseen = dict.fromkeys(tag for tags in split_tags for tag in tags if tag not in known)
    if unseen:
        more = ", ..." if len(unseen) > _LISTED else ""
        listed = ", ".join(map(repr, islice(unseen, _LISTED)))
        yield f"{split}: tags that the training rows lack: {listed}{more}"


def _reordered_tags(
    split: str, split_tags: Sequence[Tags], trained: Collection[Tags]
) -> Iterator[str]:
    """Yield a sentence on tags that the training rows have in another order only.

    Args:
        split: name of the split.
        split_tags: the tags of each of its rows.
        trained: the tags of the training rows.
    """
    orders = {tuple(sorted(tags)): tags for tags in trained}
    reordered = [
        tags for tags in split_tags if tags not in trained and tuple(sorted(tags)) in orders
    ]
    if reordered:
        order = orders[tuple(sorted(reordered[0]))]
        yield (
            f"{split}: tags in another order than in the training rows, which is another "
            f"query: {len(reordered):,} of {len(split_tags):,}, such as "
            f"{';'.join(reordered[0])!r} for {';'.join(order)!r}"
        )


def new_combinations(rows: Sequence[Row], trained: Sequence[Row]) -> str:
    """Return a note on rows whose tags training has, but not together; empty if there are none.

    Tables may well have such rows, to test how a model combines tags.

    Args:
        rows: rows of another split than training.
        trained: the training rows.
    """
    cells: dict[str, Counter[Tags]] = {}
    for row in trained:
        cells.setdefault(row.query.language, Counter())[row.query.tags] += 1
    combinations = Combinations(cells)
    new = [row for row in rows if combinations.is_new(row.query.language, row.query.tags)]
    if not new:
        return ""
    return (
        f"rows with a combination of tags that no training row has: {len(new):,} of "
        f"{len(rows):,}, such as {';'.join(new[0].query.tags)!r}"
    )


def _unseen_symbols(rows: Splits, task: StringTask) -> Iterator[str]:
    """Yield a sentence on a split and column most of whose symbols the training rows lack there.

    The reason may be that source and target are exchanged, or that something else divides symbols.
    """
    columns: dict[str, Callable[[Row], list[str]]] = {
        "sources": lambda row: task.source.split(row.query.source),
        "targets": lambda row: task.target.split(row.target),
    }
    known = {
        name: {symbol for row in rows["train"] for symbol in symbols_of(row)}
        for name, symbols_of in columns.items()
    }
    for split, split_rows in rows.items():
        for name, symbols_of in columns.items():
            symbols = [symbol for row in split_rows for symbol in symbols_of(row)]
            unseen = [symbol for symbol in symbols if symbol not in known[name]]
            if 2 * len(unseen) > len(symbols):
                yield (
                    f"{split}: {len(unseen):,} of {len(symbols):,} symbols of its {name} are none "
                    f"of the training {name}, such as {unseen[0]!r}; are its columns others, or "
                    "divided otherwise?"
                )
