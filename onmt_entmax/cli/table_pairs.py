"""The pairs of tokens that `prepare` makes of the rows of a table."""

import argparse
import random
from collections.abc import Iterable, Mapping, Sequence

from onmt_entmax.cli.tables import Table
from onmt_entmax.errors import UserError
from onmt_entmax.strings.hallucination import SHORTEST, Pair, hallucinated, stem_share
from onmt_entmax.strings.marks import is_language
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import StringTask

# Least rows of a word, and least share of it in its stem, with which hallucinated pairs help a
# language; docs/guide-tables.md has the trainings.
_ROWS_OF_A_WORD = 4.0
_SHARE_IN_STEM = 0.75


def rows_of(tables: Iterable[Table]) -> dict[str, list[Row]]:
    """Return the rows of each split."""
    rows: dict[str, list[Row]] = {}
    for table in tables:
        rows.setdefault(table.split, []).extend(table.rows)
    return rows


def pairs_of(
    rows: Mapping[str, Sequence[Row]], task: StringTask, seed: int
) -> dict[str, list[tuple[str, str]]]:
    """Return the lines of source and target of each split; those of training are shuffled.

    Training shuffles only a part of a large file at a time; without this, that part would be a few
    languages.
    """
    pairs = {split: [as_pair(row, task) for row in some] for split, some in rows.items()}
    random.Random(f"{seed}/train").shuffle(pairs.get("train", []))
    return pairs


def as_pair(row: Row, task: StringTask) -> tuple[str, str]:
    """Return the lines of a row in the source and the target file."""
    return " ".join(task.encode_source(row.query)), " ".join(task.target.encode(row.target))


def invented_pairs(
    pairs: Iterable[tuple[str, str]], task: StringTask, options: argparse.Namespace
) -> list[tuple[str, str]]:
    """Return hallucinated lines of source and target.

    Args:
        pairs: lines of the training data.
        task: of the rows.
        options: `hallucinate`, copies of a pair, and `seed`. None: one copy, of the languages that
            `has_few_stems`, which may be none.

    Raises:
        UserError: no pair has a stem, but the user wants copies.
    """
    by_language: dict[str, list[Pair]] = {}
    for source, target in pairs:
        marks, units = task.marks_and_units(source.split())
        language = next(filter(is_language, marks), "")
        pair = Pair(tuple(marks), tuple(units), tuple(target.split()))
        by_language.setdefault(language, []).append(pair)
    if options.hallucinate is None:
        by_language = {
            language: of_language
            for language, of_language in by_language.items()
            if has_few_stems(of_language)
        }
    invented = hallucinated(by_language, options.hallucinate or 1, options.seed)
    if options.hallucinate and not invented:
        raise UserError(
            f"--hallucinate: no source has {SHORTEST} symbols in a row that its target has too; "
            "leave it out"
        )
    return [(" ".join([*pair.marks, *pair.source]), " ".join(pair.target)) for pair in invented]


def has_few_stems(pairs: Sequence[Pair]) -> bool:
    """Return whether a language has many rows of a word, and words that change at their ends.

    Hallucinated pairs help such a language.
    """
    words = {pair.source for pair in pairs}
    return len(pairs) >= _ROWS_OF_A_WORD * len(words) and stem_share(pairs) >= _SHARE_IN_STEM
