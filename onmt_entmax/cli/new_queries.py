"""Make new queries for `distill`: combine the lemmas and tags of the training data anew."""

import random
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.files import read_lines
from onmt_entmax.strings.languages import language_of_line
from onmt_entmax.strings.task import INFLECTION, Query

_TRIES = 20  # samples for each new query; if all are known, there seem to be no new ones


def training_queries(train: Path) -> dict[str, list[Query]]:
    """Return the queries of the training data by language.

    Args:
        train: source file that `prepare sigmorphon` wrote.

    Raises:
        UserError: the file cannot be read, or a line names no language.
    """
    queries: dict[str, list[Query]] = {}
    for number, line in enumerate(read_lines(train), 1):
        language = language_of_line(train, number, line)
        queries.setdefault(language, []).append(INFLECTION.decode_source(line.split()))
    return queries


def new_queries(training: Sequence[Query], count: int, generator: random.Random) -> list[Query]:
    """Return new combinations of the lemmas and tags of a language.

    Tags are sampled by their frequency in the training data, and combined with a lemma of the same
    part of speech (the first tag).

    Args:
        training: the training queries, at least one, all of one language.
        count: number of new queries; the result is shorter if the language has fewer.
        generator: the random generator.
    """
    lemmas: dict[tuple[str, ...], dict[str, None]] = {}  # ordered sets, by part of speech
    for query in training:
        lemmas.setdefault(query.tags[:1], {})[query.source] = None
    choices = {part_of_speech: list(words) for part_of_speech, words in lemmas.items()}
    known_queries = set(training)
    queries: list[Query] = []
    for _ in range(count * _TRIES):
        if len(queries) == count:
            break
        sampled = generator.choice(training)
        query = sampled._replace(source=generator.choice(choices[sampled.tags[:1]]))
        if query not in known_queries:
            known_queries.add(query)
            queries.append(query)
    return queries
