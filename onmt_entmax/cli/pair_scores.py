"""The probabilities that a translator's models give to targets, for `score`.

Pairs are read in windows, sorted by length within each, and yielded in their own order.

A token that the models cannot write has no id, but the tokens after it still have probabilities. So
the models read `<unk>` in its place, and its own probability is set to zero afterwards.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from onmt_entmax.cli.scored_targets import Scored
from onmt_entmax.data.batch import batches_by_length
from onmt_entmax.data.reader import EncodedSource
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.line_reader import emptied_line_error
from onmt_entmax.search import TargetScore, TokenScore, score_targets
from onmt_entmax.strings.units import UNKNOWN
from onmt_entmax.translator import Translator

WINDOW = 4096
"""Pairs that are sorted by length together: 64 batches of the default size"""


@dataclass(frozen=True)
class _EncodedPair:
    """A pair as the models read it.

    Attributes:
        source: the source.
        target: tokens of the target.
        target_ids: ids of these tokens, or of `<unk>` for tokens that the models cannot write.
    """

    source: EncodedSource
    target: tuple[str, ...]
    target_ids: tuple[int, ...]

    def scored(self, score: TargetScore, vocabulary: Vocabulary) -> Scored:
        """Return the pair with its score, in which tokens without an id have probability zero.

        Args:
            score: score of `target_ids`.
            vocabulary: vocabulary of the target.
        """
        unknown = tuple(token for token in self.target if not vocabulary.can_write(token))
        return Scored(
            self.source, self.target, _with_impossible(score, self.target, vocabulary), unknown
        )


def score_pairs(
    pairs: Iterable[tuple[str, str]],
    translator: Translator,
    batch_size: int,
) -> Iterator[Scored]:
    """Score each pair of source and target, in order.

    Args:
        pairs: texts of sources and targets.
        translator: reads and scores them.
        batch_size: pairs scored together.

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
    encoded = {
        number: _EncodedPair(
            translator.reader.encode(source, number),
            tuple(target),
            _ids_or_unknown(target, vocabularies.target),
        )
        for number, (source, target) in enumerate(pairs, first)
    }
    # Batches have pairs whose sources and targets are of similar lengths.
    examples = [replace(pair.source.example, target=pair.target_ids) for pair in encoded.values()]
    scores: dict[int, TargetScore] = {}
    with translator.memory.limited(examples, batch_size):
        for batch in batches_by_length(examples, batch_size, vocabularies):
            target_ids = [encoded[number].target_ids for number in batch.indices]
            batch_scores = score_targets(translator.stepper, batch, target_ids)
            scores.update(zip(batch.indices, batch_scores, strict=True))
    for number, pair in encoded.items():
        yield pair.scored(scores[number], vocabularies.target)


def _ids_or_unknown(target: Sequence[str], vocabulary: Vocabulary) -> tuple[int, ...]:
    """Return the ids of tokens; `<unk>` replaces tokens that the models cannot write."""
    return tuple(
        vocabulary.encode(token if vocabulary.can_write(token) else UNKNOWN for token in target)
    )


def _with_impossible(
    score: TargetScore, target: Sequence[str], vocabulary: Vocabulary
) -> TargetScore:
    """Return a score in which tokens that the models cannot write have probability zero.

    They rank after all possible tokens.

    Args:
        score: score of the ids, in which `<unk>` stands for such tokens.
        target: tokens of the target.
        vocabulary: vocabulary of the target.
    """
    *steps, end = score.steps
    corrected = [
        step
        if vocabulary.can_write(token)
        else TokenScore(-math.inf, rank=step.support + 1, support=step.support)
        for token, step in zip(target, steps, strict=True)
    ]
    return TargetScore((*corrected, end))
