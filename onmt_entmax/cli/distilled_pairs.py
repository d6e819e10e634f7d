"""New queries for `distill`, and the predictions that become training pairs."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from onmt_entmax.report.reading import read_report
from onmt_entmax.report.writers import one_line
from onmt_entmax.strings.task import Query
from onmt_entmax.strings.units import UNKNOWN

_TRIES = 20  # draws for each new query; after so many, the language is taken to have no more


def new_queries(known: Sequence[Query], count: int, generator: random.Random) -> list[Query]:
    """Return new combinations of the known lemmas and tags of a language.

    Tags are sampled as often as the training data has them, and combined with lemmas of the same
    part of speech (the first tag).

    Args:
        known: the training queries of the language, at least one.
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
        tags = generator.choice(known).tags
        query = Query(generator.choice(choices[tags[:1]]), tags)
        if query not in taken:
            taken.add(query)
            queries.append(query)
    return queries


def pseudo_labels(
    path: Path, least: float, most: float = 1.0, generator: random.Random | None = None
) -> Iterator[tuple[str, str]]:
    """Yield source and prediction of the records whose best prediction is certified.

    The best prediction decides whether a record is kept, even if another one is drawn. Predictions
    with a token that stands for an unknown character are left out.

    Args:
        path: an exactness report of `translate` or `combine`.
        least: the least probability of the best prediction.
        most: the greatest probability of the best prediction.
        generator: draws one of the predictions by their probabilities; None takes the best.

    Raises:
        UserError: the file is no such report.
    """
    for record in read_report(path):
        hypotheses = record["hypotheses"]
        is_certified = bool(hypotheses) and record["certificate"] != "none"
        if not is_certified or not least <= hypotheses[0]["prob"] <= most:
            continue
        text = hypotheses[0]["text"]
        if generator is not None:
            texts = [hypothesis["text"] for hypothesis in hypotheses]
            probs = [hypothesis["prob"] for hypothesis in hypotheses]
            (text,) = generator.choices(texts, weights=probs)
        if UNKNOWN not in text.split():
            yield one_line(record["source"]), one_line(text)
