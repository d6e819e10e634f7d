"""The query that the page of `onmt-entmax serve` shows first, chosen to suit its models.

`page_example.tsv` lists words that readers may know, each with an inflected form to show. The page
shows the first of them whose language, letters and tags training saw.
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.inventory import Inventory
from onmt_entmax.strings.cells import Cells
from onmt_entmax.strings.languages import known_as
from onmt_entmax.strings.marks import LANGUAGE, split_tags
from onmt_entmax.strings.task import Query, StringTask

Tags = tuple[str, ...]


class _Example(NamedTuple):
    """A row of `page_example.tsv`.

    Attributes:
        language: UniMorph's name.
        word: the word to inflect.
        tags: the tags of the form to show, or its part of speech alone.
    """

    language: str
    word: str
    tags: Tags


@cache
def _examples() -> Sequence[_Example]:
    """Return the rows of `page_example.tsv`, the preferred ones first."""
    text = files("onmt_entmax").joinpath("page_example.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")][1:]
    return [_Example(language, word, split_tags(tags)) for language, word, tags in rows]


def example_query(
    task: StringTask,
    *,
    languages: Sequence[str],
    sources: Sequence[Vocabulary],
    inventory: Inventory | None,
    cells: Cells,
) -> Query:
    """Return the first of these queries that the models can answer.

    1. A word of `page_example.tsv` with its tags.
    2. A language and the tags of its most frequent cell, without a word.
    3. A language alone.

    Args:
        task: the task of the models.
        languages: the languages that all models know, at least one.
        sources: source vocabularies of the models.
        inventory: the inventory of models of inflection; None for others.
        cells: the cells that the model folder records, by language.
    """
    for example in _examples() if task.source.kind == "characters" else ():
        language = known_as(example.language, languages)
        letters = task.source.encode(example.word)
        if language in languages and _are_seen(letters, language, sources):
            for tags in _matching_tags(example.tags, language, inventory, cells):
                return Query(example.word, tags, language)
    for language in languages:
        for tags in cells.get(language, ()):
            return Query("", tags, language)
    return Query("", (), languages[0])


def _are_seen(letters: Sequence[str], language: str, sources: Sequence[Vocabulary]) -> bool:
    """Return whether every model saw all letters in training sources of a language.

    If a vocabulary does not record the tokens of each language, all of its tokens count.
    """
    return all(
        {*letters} <= {*source.seen.get(LANGUAGE + language, source.tokens)} for source in sources
    )


def _matching_tags(
    tags: Tags, language: str, inventory: Inventory | None, cells: Cells
) -> Sequence[Tags]:
    """Return the cells that a query for a word may name, the best first.

    | the language has | result |
    |---|---|
    | recorded cells | the cell of the same tags, then all cells of their part of speech |
    | tags, but no recorded cells | the tags, if the models know all of them |
    | no tags | one empty tuple |

    Recorded cells are in the order of the model folder, the most frequent first.

    Args:
        tags: tags of the example, the part of speech first.
        language: the language, as the models name it.
        inventory: the inventory of models of inflection; None for others.
        cells: the cells that the model folder records, by language.
    """
    if inventory is None or language in inventory.untagged:
        return [()]
    recorded = cells.get(language)
    if not recorded:
        return [tags] if {*tags} <= {*inventory.tags} else []
    of_same_part = [cell for cell in recorded if cell[0] == tags[0]]
    equal = [cell for cell in of_same_part if {*cell} == {*tags}]
    return [*equal, *of_same_part]
