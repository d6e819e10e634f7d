"""Seeds of samples: those of a sentence depend on the seed and on its number, and on no other."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from onmt_entmax.data.batch import Batch
from onmt_entmax.search import ModelStepper, Request, Sampling, sample
from tests.search.networks import network, sentences, stepper, together

LONGEST = 5  # tokens of an output
NUMBERS = (7, 8, 9)  # of three sentences
kinds = pytest.mark.parametrize("kind", ["input-feeding", "transformer"])
with_and_without_replacement = pytest.mark.parametrize("distinct", [False, True])


def random_model(kind: str) -> ModelStepper:
    return stepper(network(kind, alpha=1.2, seed=2))


def tokens_of_samples(
    model: ModelStepper,
    batch: Batch,
    sampling: Sampling,
    numbers: Sequence[int],
    count: int = 4,
) -> list[list[tuple[int, ...]]]:
    """Return the outputs that are drawn for each sentence, which have these numbers."""
    samples = sample(model, Request(batch), sampling, count, max_length=LONGEST, numbers=numbers)
    return [[output.tokens for output in of_sentence] for of_sentence in samples]


@kinds
@with_and_without_replacement
def test_samples_of_a_sentence_do_not_depend_on_its_batch(kind: str, distinct: bool) -> None:
    model, sampling = random_model(kind), Sampling(distinct=distinct, seed=5)
    batches = sentences(3, 4)
    in_batch = tokens_of_samples(model, together(batches), sampling, NUMBERS)
    for batch, number, expected in zip(batches, NUMBERS, in_batch, strict=True):
        assert tokens_of_samples(model, batch, sampling, [number]) == [expected]


@kinds
@with_and_without_replacement
def test_another_seed_gives_other_samples(kind: str, distinct: bool) -> None:
    model, sampling = random_model(kind), Sampling(distinct=distinct, seed=5)
    batch, other = sentences(3, 4)[0], replace(sampling, seed=6)
    outputs = tokens_of_samples(model, batch, sampling, [7])
    assert tokens_of_samples(model, batch, other, [7]) != outputs


@kinds
def test_more_samples_with_replacement_begin_with_the_same(kind: str) -> None:
    model, sampling = random_model(kind), Sampling(seed=5)
    batch = sentences(3, 4)[0]
    (few,) = tokens_of_samples(model, batch, sampling, [7])
    (more,) = tokens_of_samples(model, batch, sampling, [7], count=9)
    assert more[:4] == few
