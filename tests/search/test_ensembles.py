"""Ensembles that average the probabilities of next tokens."""

import math
from collections import Counter

import pytest

from onmt_entmax.search import EnsembleStepper, SearchConfig, beam_search
from tests.search.checks import check
from tests.search.enumeration import enumerate_support
from tests.search.tables import EOS, Table, TableStepper, ensemble_of

MEMBERS = 3
ENSEMBLES = [
    [
        Table(seed + 1000 * member, alpha=2.0 if seed % 2 else 1.3, vocabulary_size=4)
        for member in range(MEMBERS)
    ]
    for seed in range(100)
]


def test_an_ensemble_averages_probabilities_of_tokens() -> None:
    compared = 0
    for tables in ENSEMBLES:
        sequences = enumerate_support(ensemble_of(tables), [None], 3).sequences
        for best in sorted(sequences, key=sequences.__getitem__)[-1:]:
            expected = 0.0
            for position, token in enumerate([*best, EOS]):
                rows = [table.log_probs(best[:position]) for table in tables]
                expected += math.log(sum(math.exp(row[token]) for row in rows) / MEMBERS)
            assert sequences[best] == pytest.approx(expected)
            compared += 1
    assert compared > 50


def test_certificates_of_ensembles_are_about_the_union_of_supports() -> None:
    numbers = Counter[int]()  # of finished outputs
    for number, tables in enumerate(ENSEMBLES):
        stepper = ensemble_of(tables)
        config = SearchConfig(beam_size=number % 10 + 1, n_best=0, max_length=3)
        (result,) = beam_search(stepper, [None], config)
        check(result, enumerate_support(stepper, [None], 3), config)
        numbers[result.finished] += 1
    assert {0, 1, 2} <= set(numbers)


def test_members_of_an_ensemble_must_share_their_vocabulary() -> None:
    with pytest.raises(ValueError, match="same target vocabulary"):
        EnsembleStepper([TableStepper(4), TableStepper(5)])


@pytest.mark.parametrize("order", [1, -1])
def test_an_ensemble_is_as_dense_and_as_rigid_as_one_member(order: int) -> None:
    """The union with a softmax has every token; a Transformer cannot join sentences."""
    dense, rigid = TableStepper(), TableStepper()
    dense.dense, rigid.can_join = True, False
    ensemble = EnsembleStepper([dense, rigid][::order])
    assert (ensemble.dense, ensemble.can_join) == (True, False)


def test_an_ensemble_of_sparse_models_is_sparse() -> None:
    assert not EnsembleStepper([TableStepper(), TableStepper()]).dense


def test_an_ensemble_of_models_that_join_can_join() -> None:
    assert EnsembleStepper([TableStepper(), TableStepper()]).can_join
