"""Compare the rows of dev and test tables with those of training; each check yields sentences.

`prepare` prints them as warnings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

from onmt_entmax.strings.languages import known_as
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import StringTask

_LISTED = 5  # tags that are named

Splits = Mapping[str, Sequence[Row]]
"""The rows of each split"""


def differences(rows: Splits, task: StringTask) -> Iterator[str]:
    """Return a sentence for each likely mistake; without a split `train`, there is none."""
    if "train" not in rows:
        return iter(())
    return chain(
        _equal_languages(rows),
        _unseen_languages(rows),
        _unseen_tags(rows),
        _unseen_symbols(rows, task),
    )


def _equal_languages(rows: Splits) -> Iterator[str]:
    """Yield languages with several names, such as `german` and `deu`, or `eng` and `ENG`."""
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
    """Yield the languages of each split that the training rows lack, and those that dev lacks."""
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


def _unseen_tags(rows: Splits) -> Iterator[str]:
    """Yield the tags of each split that the training rows lack, or have in another order."""
    trained = {row.query.tags for row in rows["train"]}
    known = {tag for tags in trained for tag in tags}
    orders = {tuple(sorted(tags)): tags for tags in trained}
    for split, split_rows in rows.items():
        unseen = {tag: None for row in split_rows for tag in row.query.tags if tag not in known}
        if unseen:
            more = ", ..." if len(unseen) > _LISTED else ""
            listed = ", ".join(map(repr, islice(unseen, _LISTED)))
            yield f"{split}: tags that the training rows lack: {listed}{more}"
        reordered = [
            row.query.tags
            for row in split_rows
            if row.query.tags not in trained and tuple(sorted(row.query.tags)) in orders
        ]
        if reordered:
            order = orders[tuple(sorted(reordered[0]))]
            yield (
                f"{split}: tags in another order than in the training rows, which is another "
                f"query: {len(reordered):,} of {len(split_rows):,}, such as "
                f"{';'.join(reordered[0])!r} for {';'.join(order)!r}"
            )


def _unseen_symbols(rows: Splits, task: StringTask) -> Iterator[str]:
    """Yield the splits most of whose symbols the training rows lack in the same column.

    So it is if source and target are exchanged, or if something else divides symbols.
    """
    known_sources = {unit for row in rows["train"] for unit in task.source.split(row.query.source)}
    known_targets = {unit for row in rows["train"] for unit in task.target.split(row.target)}
    for split, split_rows in rows.items():
        sources = [unit for row in split_rows for unit in task.source.split(row.query.source)]
        targets = [unit for row in split_rows for unit in task.target.split(row.target)]
        for name, symbols, known in (
            ("sources", sources, known_sources),
            ("targets", targets, known_targets),
        ):
            unseen = [symbol for symbol in symbols if symbol not in known]
            if 2 * len(unseen) > len(symbols):
                yield (
                    f"{split}: {len(unseen):,} of {len(symbols):,} symbols of its {name} are none "
                    f"of the training {name}, such as {unseen[0]!r}; are its columns others, or "
                    "divided otherwise?"
                )
