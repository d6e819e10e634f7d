"""Check queries against what the models of a `Transducer` read."""

from __future__ import annotations

from collections.abc import Sequence

from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.strings.languages import known_as
from onmt_entmax.strings.marks import LANGUAGE, decode_tag, is_language, is_tag
from onmt_entmax.strings.task import Query, StringTask


class TransducerError(UserError):
    """Models that do not fit together, or a query that they cannot answer."""


class QueryChecker:
    """Checks queries before the models are searched.

    Args:
        task: the task of the models.
        sources: source vocabularies of the models, at least one.

    Attributes:
        languages: languages that all source vocabularies have, sorted.
        tags: tags that all source vocabularies have, sorted.
    """

    def __init__(self, task: StringTask, sources: Sequence[Vocabulary]) -> None:
        self._task = task
        self._source = sources[0]
        tokens = set.intersection(*(set(source.tokens) for source in sources))
        self.tags = sorted(decode_tag(token) for token in tokens if is_tag(token))
        self.languages = sorted(
            token.removeprefix(LANGUAGE) for token in tokens if is_language(token)
        )

    def checked(self, query: Query) -> Query:
        """Return a query with its language as the models name it.

        Raises:
            TransducerError: if the source is empty or cannot be divided into units, the language is
                unknown or missing, a tag is empty, or the query has a language or tags although the
                models read none.
        """
        problem = self._task.source.problem(query.source)
        if problem:
            raise TransducerError(f"the source {problem}")
        if "" in query.tags:
            raise TransducerError(f"a tag is empty in {';'.join(query.tags)!r}")
        if query.tags and not self._task.has_tags:
            raise TransducerError("the query has tags, and the model reads none")
        return query._replace(language=self.known_language(query.language))

    def known_language(self, language: str) -> str:
        """Return a language as the models name it.

        Args:
            language: its name, or an ISO 639-3 code; may be empty if there is only one, or none.

        Raises:
            TransducerError: if the models do not know it, or it is missing or superfluous.
        """
        if not self._task.languages:
            if language:
                raise TransducerError(
                    f"{language!r} is the language of a query, and the model reads none"
                )
            return ""
        if not language and len(self.languages) == 1:
            return self.languages[0]
        if not language:
            raise TransducerError(
                f"no language is named, and the model knows {', '.join(self.languages)}"
            )
        known = known_as(language, self.languages)
        if known not in self.languages:
            hint = nearest(language, self.languages) or f"; it knows {', '.join(self.languages)}"
            raise TransducerError(f"the model knows no language {language!r}{hint}")
        return known

    def tags_of(self, language: str) -> list[str]:
        """Return the tags of a language by the first model, or all tags if it records none."""
        seen = self._source.seen.get(LANGUAGE + language, ())
        return sorted(decode_tag(token) for token in seen if is_tag(token)) or self.tags

    def has_tags(self, language: str) -> bool:
        """Return whether training saw tags in a language, as far as the first model records it."""
        if not self._task.has_tags:
            return False
        return any(map(is_tag, self._source.seen.get(LANGUAGE + language, self._source.tokens)))
