"""The probabilities that a translator's models give to targets, for `score`.

Pairs are read in windows, sorted by length within each, and yielded in their own order.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from onmt_entmax.cli.scored_targets import Scored
from onmt_entmax.data.batch import batches_by_length
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.line_reader import emptied_line_error
from onmt_entmax.search import TargetScore, TokenScore, score_targets
from onmt_entmax.strings.units import UNKNOWN
from onmt_entmax.translator import Translator

WINDOW = 4096  # pairs that are sorted by length together


def score_pairs(
    pairs: Iterable[tuple[str, str]],
    translator: Translator,
    batch_size: int,
) -> Iterator[Scored]:
    """Score each pair of source and target, in order, as a translator reads them.

    Raises:
        TranslationError: the transforms leave nothing of a source.
        TooLargeError: a pair is longer than a Transformer model reads or the memory takes.
    """
    supply = (translator.reader.preprocess(source, target) for source, target in pairs)
    done = 0
    while window := list(islice(supply, WINDOW)):
        for number, (source, _) in enumerate(window, done):
            if not source:
                raise emptied_line_error(number)
        yield from _score_window(window, done, translator, batch_size)
        done += len(window)


def _score_window(
    pairs: Sequence[tuple[Sequence[str], Sequence[str]]],
    first: int,
    translator: Translator,
    batch_size: int,
) -> Iterator[Scored]:
    """Score pairs of tokens, sorted by length; yield them in their own order.

    Args:
        pairs: tokens of source and target.
        first: number of the first pair.
        translator: reads and scores them.
        batch_size: pairs scored together.
    """
    vocabularies = translator.vocabularies
    vocabulary = vocabularies.target
    sources = [
        translator.reader.encode(source, number) for number, (source, _) in enumerate(pairs, first)
    ]
    targets = [target for _, target in pairs]
    ids = {
        number: _ids_or_unknown(target, vocabulary) for number, target in enumerate(targets, first)
    }
    # Batches group by the lengths of sources and targets.
    examples = [replace(source.example, target=ids[source.example.index]) for source in sources]
    scores: dict[int, TargetScore] = {}
    with translator.memory.limited(examples, batch_size):
        for batch in batches_by_length(examples, batch_size, vocabularies):
            batch_ids = [ids[number] for number in batch.indices]
            batch_scores = score_targets(translator.stepper, batch, batch_ids)
            scores.update(zip(batch.indices, batch_scores, strict=True))
    for number, (source, target) in enumerate(zip(sources, targets, strict=True), first):
        score = _with_impossible(scores[number], target, vocabulary)
        unknown = tuple(token for token in target if not vocabulary.can_write(token))
        yield Scored(source, tuple(target), score, unknown)


def _ids_or_unknown(target: Sequence[str], vocabulary: Vocabulary) -> tuple[int, ...]:
    """Return the ids of a target, that of `<unk>` for tokens that the model cannot write."""
    return tuple(
        vocabulary.encode(token if vocabulary.can_write(token) else UNKNOWN for token in target)
    )


def _with_impossible(
    score: TargetScore, target: Sequence[str], vocabulary: Vocabulary
) -> TargetScore:
    """Return a score in which tokens that the model cannot write have probability zero.

    Args:
        score: of the ids, which have `<unk>` in the place of such tokens.
        target: tokens of the target.
        vocabulary: of the target.
    """
    *steps, end = score.steps
    corrected = [
        step
        if vocabulary.can_write(token)
        else TokenScore(-math.inf, rank=step.support + 1, support=step.support)
        for token, step in zip(target, steps, strict=True)
    ]
    return TargetScore((*corrected, end))
