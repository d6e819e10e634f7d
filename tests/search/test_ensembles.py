"""Ensembles that average the probabilities of next tokens."""

import math
from collections import Counter

import pytest

from onmt_entmax.search import EnsembleStepper, SearchConfig, beam_search
from tests.search.checks import check
from tests.search.enumeration import Tokens, enumerate_support
from tests.search.table_steppers import TableStepper, ensemble_of
from tests.search.tables import EOS, Table

MEMBERS = 3
ENSEMBLES = [
    [
        Table(seed + 1000 * member, alpha=2.0 if seed % 2 else 1.3, vocabulary_size=4)
        for member in range(MEMBERS)
    ]
    for seed in range(100)
]


def log_prob_by_definition(tables: list[Table], tokens: Tokens) -> float:
    """Return the log-probability of a sequence, by the mean probability of each of its tokens."""
    total = 0.0
    for position, token in enumerate([*tokens, EOS]):
        rows = [table.log_probs(tokens[:position]) for table in tables]
        total += math.log(sum(math.exp(row[token]) for row in rows) / MEMBERS)
    return total


def test_an_ensemble_averages_probabilities_of_tokens() -> None:
    """The best sequence of each ensemble is compared, if one is short enough to be complete."""
    compared = 0
    for tables in ENSEMBLES:
        sequences = enumerate_support(ensemble_of(tables), [None], 3).sequences
        if sequences:
            best = max(sequences, key=sequences.__getitem__)
            assert sequences[best] == pytest.approx(log_prob_by_definition(tables, best))
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


@pytest.mark.parametrize("order", [1, -1], ids=["first", "last"])
def test_an_ensemble_with_a_dense_model_is_dense(order: int) -> None:
    """The union with the support of a softmax has every token."""
    models = [TableStepper(dense=True), TableStepper()]
    assert EnsembleStepper(models[::order]).dense


@pytest.mark.parametrize("order", [1, -1], ids=["first", "last"])
def test_an_ensemble_with_a_model_that_cannot_join_cannot_join(order: int) -> None:
    """The rows of a Transformer share their position, so that no sentence can join later."""
    models = [TableStepper(can_join=False), TableStepper()]
    assert not EnsembleStepper(models[::order]).can_join


def test_an_ensemble_of_sparse_models_is_sparse() -> None:
    assert not EnsembleStepper([TableStepper(), TableStepper()]).dense


def test_an_ensemble_of_models_that_join_can_join() -> None:
    assert EnsembleStepper([TableStepper(), TableStepper()]).can_join
