"""New queries for `distill`: the lemmas and tags of the training data, combined anew."""

import random
from collections.abc import Sequence

from onmt_entmax.strings.task import Query

_TRIES = 20  # draws for each new query; after so many, the language is taken to have no more


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
