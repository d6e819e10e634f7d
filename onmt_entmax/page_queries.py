"""Read the queries that the page of `onmt-entmax serve` sends.

A query is a JSON object, whose values are texts. It is about one source, or about the paradigm of a
lemma, and has the fields that models of its task read:

    {"source": "kitap", "language": "turkish", "tags": "N;ACC;SG"}      `PageQueries.query`
    {"source": "kitap", "language": "turkish", "pos": "N"}              `PageQueries.paradigm`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from onmt_entmax.errors import UserError
from onmt_entmax.strings.task import Query, StringTask

# Largest number of characters of each field, and of a source by its kind of units. Long words have
# about 60. The models answer one query at a time, so a longer one would keep others waiting.
LONGEST = {"language": 100, "tags": 500, "pos": 100}
LONGEST_SOURCE = {"characters": 80, "symbols": 500, "text": 2000}
# Fields that hold the source; pages of release 1.0 send the last two.
_SOURCE_NAMES = ("source", "lemma", "sentence")


class ParadigmQuery(NamedTuple):
    """A query for all forms of a lemma.

    Attributes:
        language: name or code of the language, as the page sends it.
        lemma: the word.
        pos: its part of speech.
    """

    language: str
    lemma: str
    pos: str


@dataclass(frozen=True)
class PageQueries:
    """Reads queries for models of a task.

    Attributes:
        task: the task of the models.
        check: returns a query as the models spell it, or raises a UserError if they cannot answer
            it, as `Transducer.checked` and `Inventory.checked_query` do.
    """

    task: StringTask
    check: Callable[[Query], Query]

    def query(self, fields: Mapping[str, Any]) -> Query:
        """Return the query for one source, with language and tags as the models name them.

        Raises:
            UserError: a field is too long or not a text, or the models cannot answer the query.
        """
        source = self._source(fields)
        language = _text_field(fields, "language") if self.task.languages else ""
        tags = self.task.tags_of(_text_field(fields, "tags")) if self.task.has_tags else ()
        return self.check(Query(source, tags, language))

    def paradigm(self, fields: Mapping[str, Any]) -> ParadigmQuery:
        """Return the query for a paradigm, without checking whether the models can answer it.

        Raises:
            UserError: a field is too long or not a text.
        """
        language = _text_field(fields, "language")
        return ParadigmQuery(language, self._source(fields), _text_field(fields, "pos"))

    def _source(self, fields: Mapping[str, Any]) -> str:
        """Return the source; an empty text if there is none.

        Raises:
            UserError: it is too long or not a text.
        """
        name = next((name for name in _SOURCE_NAMES if name in fields), "source")
        # Keyboards of phones leave a space after a word.
        return _text_field(fields, name, LONGEST_SOURCE[self.task.source.kind]).strip()


def _text_field(fields: Mapping[str, Any], name: str, longest: int | None = None) -> str:
    """Return a field of a query; an empty text if it is not there.

    Args:
        fields: the query as the page sends it.
        name: the name of the field.
        longest: largest number of characters; None: the number in `LONGEST`.

    Raises:
        UserError: it is too long or not a text.
    """
    text = fields.get(name, "")
    most = LONGEST[name] if longest is None else longest
    if not isinstance(text, str) or any(map(_is_surrogate, text)):
        raise UserError(f"{name}: expected a text")
    if len(text) > most:
        raise UserError(f"{name}: longer than {most:,} characters")
    return text


def _is_surrogate(character: str) -> bool:
    """Return whether a character is half of a surrogate pair; JSON can hold one, UTF-8 cannot."""
    return "\ud800" <= character <= "\udfff"
