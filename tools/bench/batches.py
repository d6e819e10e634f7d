"""Training batches of a text, the same ones in every run.

As in training, a bucket of pairs is sorted by length and cut into batches, which come in random
order. Unlike in training, each bucket is a random sample of all pairs, drawn with replacement, and
batches that are not full are left out.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from onmt_entmax.data.batch import Batch, Example, batches_by_length
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.errors import UserError, counted
from tools.bench.texts import Pair, Text

ORDER_SEED = 2  # of the order of batches; any number would do


@dataclass(frozen=True)
class Corpus:
    """The pairs of a text, with vocabularies.

    Attributes:
        pairs: source and target tokens.
        vocabularies: vocabularies of both sides.
    """

    pairs: Sequence[Pair]
    vocabularies: Vocabularies

    @classmethod
    def read(cls, text: Text, data: Path | None) -> Corpus:
        """Read a text.

        Args:
            text: says how its pairs are read, and how large its vocabularies are.
            data: folder of real text; None: read the text's substitute, such as random words.

        Raises:
            UserError: a file cannot be read.
        """
        pairs = text.read(data)
        return cls(pairs, vocabularies_of(pairs, text.vocabulary, joint=text.joint))

    def batches(self, batch_size: int, bucket_size: int) -> Iterator[Batch]:
        """Yield training batches without end, the same ones at every call.

        Args:
            batch_size: pairs of each batch.
            bucket_size: pairs that are sorted by length together.

        Raises:
            UserError: there is no full batch.
        """
        if batch_size > min(len(self.pairs), bucket_size):
            raise UserError(
                f"no batch of {batch_size}: {counted(len(self.pairs), 'pair')} in buckets of "
                f"{bucket_size}"
            )
        order = random.Random(ORDER_SEED)
        for seed in count():
            bucket = self._bucket(bucket_size, seed)
            batches = list(batches_by_length(bucket, batch_size, self.vocabularies))
            order.shuffle(batches)
            yield from (batch for batch in batches if len(batch) == batch_size)

    def _bucket(self, size: int, seed: int) -> list[Example]:
        """Return a random sample of the pairs, since a part of a file may be unlike the whole.

        Args:
            size: number of pairs; some may be drawn twice.
            seed: seed of the sample.
        """
        encode_source, encode_target = (side.encode for side in self.vocabularies)
        pairs = random.Random(seed).choices(self.pairs, k=size)
        return [
            Example(encode_source(source), encode_target(target), index=0)  # nothing reads indices
            for source, target in pairs
        ]


def vocabularies_of(pairs: Sequence[Pair], size: int, *, joint: bool) -> Vocabularies:
    """Return vocabularies of exactly `size` tokens, padded with unused ones.

    Args:
        pairs: source and target tokens.
        size: number of tokens of each side, with special ones.
        joint: whether the sides share one vocabulary.
    """
    source, target = (Counter(chain.from_iterable(side)) for side in zip(*pairs, strict=True))
    if joint:
        source = target = source + target
    return Vocabularies(_vocabulary(source, size), _vocabulary(target, size))


def _vocabulary(counts: Counter[str], size: int) -> Vocabulary:
    """Return the most frequent tokens behind the special ones, padded with unused ones."""
    specials = [str(token) for token in TARGET_SPECIALS]
    tokens = specials + [token for token, _ in counts.most_common() if token not in specials]
    tokens += [f"<unused{number}>" for number in range(size - len(tokens))]
    return Vocabulary(tuple(tokens[:size]))
