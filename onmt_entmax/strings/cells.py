"""Cells of paradigms: the sequences of tags in each language's training data."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from onmt_entmax.errors import UserError
from onmt_entmax.strings.marks import is_language, split_tags
from onmt_entmax.strings.task import INFLECTION

Cells = Mapping[str, Mapping[tuple[str, ...], int]]
"""For each language, how often its training sources have each sequence of tags"""


def count_cells(sources: Iterable[str]) -> Cells:
    """Return the cells of sources; those without a language or tags do not count."""
    cells: dict[str, Counter[tuple[str, ...]]] = {}
    for tokens in map(str.split, sources):
        if tokens and is_language(tokens[0]):
            query = INFLECTION.decode_source(tokens)
            if query.tags:
                cells.setdefault(query.language, Counter())[query.tags] += 1
    return cells


def trained_order(cells: Cells, language: str, tags: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the most frequent order in which training sources have tags.

    None if they have them in the given order, or never together.
    """
    counts = cells.get(language, {})
    if tags in counts:
        return None
    wanted = sorted(tags)
    orders = [known for known in counts if len(known) == len(tags) and sorted(known) == wanted]
    return max(orders, key=counts.__getitem__, default=None)


class Combinations:
    """The combinations of tags in the training data of each language, whatever their order.

    Args:
        cells: cells of the training data.
    """

    def __init__(self, cells: Cells) -> None:
        self._combinations = {
            language: {tuple(sorted(tags)) for tags in numbers}
            for language, numbers in cells.items()
        }
        self._tags = {
            language: {tag for tags in numbers for tag in tags}
            for language, numbers in cells.items()
        }

    def is_new(self, language: str, tags: tuple[str, ...]) -> bool:
        """Return whether training has each of these tags in a language, but no source has them all.

        A source with further tags is another combination. Without tags, the result is False.
        """
        if not tags or not self._tags.get(language, set()).issuperset(tags):
            return False
        return tuple(sorted(tags)) not in self._combinations[language]


def cells_text(cells: Cells) -> str:
    """Return the text of `cells.tsv`: language, tags and count, the most frequent cells first.

    Cells that `parse_cells` would read as other tags are left out: a task with spaces between its
    tags may have the tag `V;PST`, or one with an open bracket.
    """
    return "".join(
        f"{language}\t{';'.join(tags)}\t{count}\n"
        for language, counts in sorted(cells.items())
        for tags, count in sorted(counts.items(), key=lambda cell: (-cell[1], cell[0]))
        if _can_be_read(tags)
    )


def _can_be_read(tags: tuple[str, ...]) -> bool:
    """Return whether `parse_cells` reads these tags as they are."""
    text = ";".join(tags)
    return split_tags(text) == tags and "\t" not in text and len(text.splitlines()) == 1


def parse_cells(lines: Iterable[str], name: str) -> Cells:
    """Return the cells that the lines of `cells.tsv` list.

    If a cell is listed twice, as in two files that were joined, its counts are added.

    Args:
        lines: lines of the file.
        name: name of the file, for the error.

    Raises:
        UserError: names the first line that has another form.
    """
    cells: dict[str, Counter[tuple[str, ...]]] = {}
    for number, line in enumerate(lines, 1):
        match = re.fullmatch(r"(\S+)\t([^\t]+)\t([0-9]{1,12})", line)
        if match is None:
            raise UserError(f"{name}:{number}: expected language, tags and number between tabs")
        language, tags, count = match.groups()
        cells.setdefault(language, Counter())[split_tags(tags)] += int(count)
    return cells
