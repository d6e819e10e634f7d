"""The languages and tags that models of inflection know, and checks of queries against them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.inflection import Question
from onmt_entmax.query_checks import TransducerError
from onmt_entmax.strings.languages import known_as
from onmt_entmax.strings.marks import LANGUAGE, decode_tag, encode_tag, is_language, is_tag
from onmt_entmax.strings.tag_hints import nearest_tags
from onmt_entmax.strings.task import Query

# Least similarity of a language that a hint names, as `difflib` measures it.
_SIMILAR = 0.8


class InflectionError(TransducerError):
    """A model that does not inflect, or a query that it cannot answer."""


@dataclass(frozen=True)
class Inventory:
    """The languages and tags that all source vocabularies of some models have.

    Attributes:
        languages: names of the languages, sorted.
        tags: tags of any language, sorted.
        untagged: names of the languages whose training data has no tags.
    """

    languages: list[str]
    tags: list[str]
    untagged: list[str]

    @classmethod
    def of(cls, sources: Iterable[Vocabulary]) -> Inventory:
        """Return the languages and tags that all source vocabularies have."""
        sources = list(sources)
        tokens = set.intersection(*(set(source.tokens) for source in sources))
        languages = sorted(filter(is_language, tokens))
        untagged = []
        for language in languages:
            # If a vocabulary does not record the tokens of each language, all of its tokens count.
            seen_by_model = [source.seen.get(language, tokens) for source in sources]
            if not any(is_tag(token) for seen in seen_by_model for token in seen):
                untagged.append(language)
        return cls(
            languages=[language.removeprefix(LANGUAGE) for language in languages],
            tags=sorted(decode_tag(token) for token in tokens if is_tag(token)),
            untagged=[language.removeprefix(LANGUAGE) for language in untagged],
        )

    def checked(self, question: Question) -> Question:
        """Return a query with the lemma stripped, and language and tags as the models know them.

        Raises:
            InflectionError: if the models do not know the language or any of the tags, if the lemma
                or a tag is empty, or if tags are missing although the language has some.
        """
        language = self._known_language(question.language)
        lemma = question.lemma.strip()  # a program may have left a line end
        if not lemma:
            raise InflectionError("the lemma is empty")
        tags = self._known_tags(language, lemma, question.tags)
        return replace(question, language=language, lemma=lemma, tags=tags)

    def checked_query(self, query: Query) -> Query:
        """Return the query of a `Transducer` with the changes that `checked` makes to a question.

        Raises:
            InflectionError: see `checked`.
        """
        return self.checked(Question(query.language, query.source, query.tags)).query

    def _known_language(self, name: str) -> str:
        """Return a language as the models name it; a query may have its code.

        Raises:
            InflectionError: if the models do not know it.
        """
        language = known_as(name, self.languages)
        if language in self.languages:
            return language
        similar = difflib.get_close_matches(language, self.languages, n=1, cutoff=_SIMILAR)
        hint = f"it knows {', '.join(self.languages)}"
        if similar:
            hint = f"did you mean {similar[0]!r}?"
        raise InflectionError(f"the model knows no language {language!r}; {hint}")

    def _known_tags(self, language: str, lemma: str, tags: tuple[str, ...]) -> tuple[str, ...]:
        """Return the tags of a query as the models know them.

        Args:
            language: as the models name it.
            lemma: the lemma of the query, for a hint.
            tags: the tags of the query.

        Raises:
            InflectionError: if there are none although the language has some, if one is empty, or
                if the models know none of them.
        """
        if not tags and language in self.untagged:
            return ()
        if not tags:
            raise InflectionError(f"there are no tags, but {language} has some, such as V;PST")
        if "" in tags:
            raise InflectionError(f"a tag is empty in {';'.join(tags)!r}")
        spelled = tuple(map(self._as_known, tags))
        if set(spelled).isdisjoint(self.tags):
            hint = self._tags_hint(language, lemma, spelled)
            raise InflectionError(f"the model knows no tag of {';'.join(spelled)!r}; {hint}")
        return spelled

    def _tags_hint(self, language: str, lemma: str, tags: Sequence[str]) -> str:
        """Return a hint for tags that are all unknown."""
        if language in self.untagged:
            return f"its training data for {language} has none: leave them out, as in ''"
        if set(lemma.split(";")) <= set(self.tags):
            return "are lemma and tags exchanged? The lemma comes first"
        near = nearest_tags(encode_tag(";".join(tags)), self.tags)
        if near:
            return f"did you mean {near}?"
        return "tags are as in the training data, such as V;PST"

    def _as_known(self, tag: str) -> str:
        """Return a tag as the models know it: without outer spaces, if they know only that form."""
        stripped = tag.strip()
        return stripped if tag not in self.tags and stripped in self.tags else tag
