"""The task of a model: how strings of users become tokens, and tokens become strings.

A source has marks and units, as in Peters, Niculae and Martins (2019), section 4.1:

    draw, V;V.PTCP;PST, english    ->    lang=english +V +V.PTCP +PST d r a w
    drawn                          ->    d r a w n

Language and tags are marks, each one token (`strings.marks`); tasks without them have none.

Every model folder records its task (`strings.task_record`), so that users name it only once.
`strings.codec.Codec` stands between these tokens and those of the network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from onmt_entmax.errors import UserError, counted
from onmt_entmax.rules import shown
from onmt_entmax.strings.marks import (
    LANGUAGE,
    decode_tag,
    encode_tag,
    is_language,
    is_tag,
    split_tags,
)
from onmt_entmax.strings.units import CHARACTERS, TEXT, Unit

# Names of the columns of tables.
SOURCE = "source"
TARGET = "target"
TAGS = "tags"
LANGUAGE_COLUMN = "language"
COLUMNS = (SOURCE, TARGET, TAGS, LANGUAGE_COLUMN)
LEFT_OUT = "-"  # a column that is not read
# Values of `target_order`.
LEFT_TO_RIGHT = "left_to_right"
RIGHT_TO_LEFT = "right_to_left"


class TaskError(UserError):
    """A task that makes no sense; the message names the key."""


class Query(NamedTuple):
    """What a model is asked: the source of an output.

    Attributes:
        source: the text of the source.
        tags: its tags; none if the task has no tags.
        language: name or code of its language; empty if sources have none.
    """

    source: str
    tags: tuple[str, ...] = ()
    language: str = ""


def check_columns(columns: Sequence[str], needed: Sequence[str]) -> None:
    """Check the columns of a table.

    Raises:
        TaskError: if one is unknown, named twice, or needed and missing.
    """
    for column, count in Counter(columns).items():
        if column not in (*COLUMNS, LEFT_OUT):
            raise TaskError(
                f"columns: {shown(column)} is none of {', '.join(COLUMNS)} or {LEFT_OUT} "
                "(a column to leave out)"
            )
        if count > 1 and column != LEFT_OUT:
            raise TaskError(f"columns: {column} is there twice")
    for column in needed:
        if column not in columns:
            raise TaskError(f"columns: {column} is missing")


@dataclass(frozen=True)
class StringTask:
    """What a model reads and writes.

    Attributes:
        columns: columns of its tables: `source`, `target`, `tags`, `language`, and `-` for others.
        heading: the cells above these columns in the tables, if usual names do not say the same
            columns (`own_headings.py`), as `form` above the source and `lemma` above the target of
            a model that predicts lemmas. Else empty.
        source: units of a source.
        target: units of a target.
        tag_separator: what stands between two tags in a table.
        languages: whether sources begin with their language.
        right_to_left: whether the network writes the last unit first.
        copies: whether unknown symbols are copied.

    Raises:
        TaskError: if a column is unknown, missing or named twice, or the heading has more or fewer
            cells than there are columns.
    """

    columns: tuple[str, ...] = (SOURCE, TARGET)
    heading: tuple[str, ...] = ()
    source: Unit = CHARACTERS
    target: Unit = CHARACTERS
    tag_separator: str = ";"
    languages: bool = False
    right_to_left: bool = False
    copies: bool = False

    def __post_init__(self) -> None:
        check_columns(self.columns, (SOURCE, TARGET))
        if self.heading and len(self.heading) != len(self.columns):
            number = counted(len(self.heading), "cell")
            raise TaskError(f"heading: {number}, but {counted(len(self.columns), 'column')}")

    @property
    def order(self) -> str:
        """The value of `target_order`."""
        return RIGHT_TO_LEFT if self.right_to_left else LEFT_TO_RIGHT

    @property
    def has_tags(self) -> bool:
        """Whether a query has tags."""
        return TAGS in self.columns

    def encode_source(self, query: Query) -> list[str]:
        """Return the source tokens of a query: language, tags, units."""
        marks = [LANGUAGE + query.language] if query.language else []
        return [*marks, *map(encode_tag, query.tags), *self.source.encode(query.source)]

    def decode_source(self, tokens: Sequence[str]) -> Query:
        """Return the query of source tokens, the inverse of `encode_source`."""
        marks, units = self.marks_and_units(tokens)
        language = marks[0].removeprefix(LANGUAGE) if marks and is_language(marks[0]) else ""
        tags = tuple(decode_tag(token) for token in marks if is_tag(token))
        return Query(self.source.decode(units), tags, language)

    def marks_and_units(self, tokens: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
        """Return the marks and the units of source tokens; words of a text have no marks."""
        if self.source.kind == "text":
            return (), tokens
        end = 1 if tokens and is_language(tokens[0]) else 0
        while end < len(tokens) and is_tag(tokens[end]):
            end += 1
        return tokens[:end], tokens[end:]

    def heading_of(self, column: str) -> str:
        """Return the cell of the heading above a column; empty without a heading."""
        return self.heading[self.columns.index(column)] if self.heading else ""

    def tags_of(self, text: str) -> tuple[str, ...]:
        """Return the tags that a table's cell holds; none for an empty one."""
        return split_tags(text, self.tag_separator)


INFLECTION = StringTask((SOURCE, TARGET, TAGS), languages=True)
"""The task of models that record none and whose sources have languages (`prepare sigmorphon`)"""
TRANSLATION = StringTask(source=TEXT, target=TEXT)
"""The task of models that record none and whose sources have no languages"""
