"""New queries for `distill`: the lemmas and tags of the training data, combined anew."""

import random
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.files import read_lines
from onmt_entmax.strings.languages import language_of_line
from onmt_entmax.strings.task import INFLECTION, Query

_TRIES = 20  # draws for each new query; after so many, the language is taken to have no more


def training_queries(train: Path) -> dict[str, list[Query]]:
    """Return the queries of the training data by language.

    Args:
        train: source file of `prepare sigmorphon`.

    Raises:
        UserError: it cannot be read, or a line names no language.
    """
    queries: dict[str, list[Query]] = {}
    for number, line in enumerate(read_lines(train), 1):
        language = language_of_line(train, number, line)
        queries.setdefault(language, []).append(INFLECTION.decode_source(line.split()))
    return queries


def new_queries(known: Sequence[Query], count: int, generator: random.Random) -> list[Query]:
    """Return new combinations of the known lemmas and tags of a language.

    Tags are sampled as often as the training data has them, and combined with lemmas of the same
    part of speech (the first tag).

    Args:
        known: the training queries, at least one, all of one language.
        count: how many to make; there are fewer if the language has no more.
        generator: the random generator.
    """
    lemmas: dict[tuple[str, ...], dict[str, None]] = {}  # by part of speech, each once
    for query in known:
        lemmas.setdefault(query.tags[:1], {})[query.source] = None
    choices = {part_of_speech: list(words) for part_of_speech, words in lemmas.items()}
    taken = set(known)
    queries: list[Query] = []
    for _ in range(count * _TRIES):
        if len(queries) == count:
            break
        sampled = generator.choice(known)
        query = sampled._replace(source=generator.choice(choices[sampled.tags[:1]]))
        if query not in taken:
            taken.add(query)
            queries.append(query)
    return queries
