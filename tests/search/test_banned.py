"""Tokens that the output of one sentence may not have, against enumeration."""

import math
from collections.abc import Callable

import pytest

from onmt_entmax.search import (
    Sampling,
    SearchConfig,
    SearchResult,
    beam_search,
    exact_search,
    sample,
    verify,
)
from tests.search.enumeration import EnumeratedSupport, enumerate_support
from tests.search.tables import Table, TableStepper

TABLES = [Table(seed, alpha, end=1.0) for seed in range(12) for alpha in (1.5, 2.0)]
BANNED = [{2}, {3, 4}, set(), {2, 3, 4}]
LENGTH = 5


def allowed(table: Table, banned: set[int]) -> EnumeratedSupport:
    stepper = TableStepper(excluded=(0, *banned))
    return enumerate_support(stepper, [table], LENGTH, 100_000)


def config(n_best: int = 0) -> SearchConfig:
    return SearchConfig(beam_size=200, n_best=n_best, max_length=LENGTH)


def by_beam(table: Table, banned: set[int]) -> SearchResult:
    # Beside a sentence of the same table without a ban.
    pair = beam_search(TableStepper(), [table, table], config(), banned=[banned, ()])
    return pair[0]


def by_exact_search(table: Table, banned: set[int]) -> SearchResult:
    return exact_search(TableStepper(), [table], config(), banned=banned)


@pytest.mark.parametrize("search", [by_beam, by_exact_search])
@pytest.mark.parametrize("banned", BANNED, ids=str)
def test_all_outputs_without_the_tokens_are_found(
    search: Callable[[Table, set[int]], SearchResult], banned: set[int]
) -> None:
    for table in TABLES:
        found = {h.tokens: h.log_prob for h in search(table, banned).hypotheses}
        assert found == pytest.approx(allowed(table, banned).strings)


@pytest.mark.parametrize("search", [by_beam, by_exact_search])
def test_the_probability_of_the_tokens_is_counted_as_excluded(
    search: Callable[[Table, set[int]], SearchResult],
) -> None:
    for table in TABLES:
        certificate = search(table, {2}).certificate
        prefixes = allowed(table, {2}).excluded
        assert certificate.excluded == pytest.approx(sum(map(math.exp, prefixes.values())))
        largest = max(prefixes.values(), default=-math.inf)
        assert certificate.log_excluded_bound == pytest.approx(largest)


def test_a_neighbour_keeps_its_tokens() -> None:
    for table in TABLES:
        pair = beam_search(TableStepper(), [table, table], config(), banned=[{2, 3}, ()])
        alone = beam_search(TableStepper(), [table], config())[0]
        assert [h.tokens for h in pair[1].hypotheses] == [h.tokens for h in alone.hypotheses]


def test_a_narrow_beam_that_starts_again_keeps_the_ban() -> None:
    for table in (Table(seed, 1.0, spread=1.0) for seed in range(40)):
        free = allowed(table, set()).strings
        banned = set(max(free, key=free.__getitem__))  # so that the ban decides
        stepper = TableStepper()
        stepper.dense = True  # such searches begin with a beam of one
        result = beam_search(stepper, [table], config(n_best=1), banned=[banned])[0]
        strings = allowed(table, banned).strings
        if strings and result.certificate.level != "none":
            assert result.hypotheses[0].tokens == max(strings, key=strings.__getitem__)


def test_verification_repeats_the_ban() -> None:
    for table in TABLES:
        result = by_beam(table, {2})
        repeated = verify(TableStepper(), [table], result, config(), banned={2})
        assert repeated.agrees


def test_samples_lack_the_tokens_and_follow_the_rest() -> None:
    table, count = Table(3, 1.0), 4000
    (drawn,) = sample(TableStepper(), [table], Sampling(), count, LENGTH, banned=[{2}])
    assert all(2 not in each.tokens for each in drawn)
    first = table.log_probs(())
    weights = {t: math.exp(first[t]) for t in (1, 3, 4)}
    for token in (3, 4):
        share = sum(each.tokens[:1] == (token,) for each in drawn) / count
        assert share == pytest.approx(weights[token] / sum(weights.values()), abs=0.04)


def test_as_many_bans_as_sentences() -> None:
    with pytest.raises(ValueError, match="banned has 1 for 2 sentences"):
        beam_search(TableStepper(), TABLES[:2], config(), banned=[()])


@pytest.mark.parametrize("token", [-1, 5])
def test_a_banned_token_is_in_the_vocabulary(token: int) -> None:
    with pytest.raises(ValueError, match=f"token {token} is not in the vocabulary"):
        beam_search(TableStepper(), TABLES[:1], config(), banned=[{token}])
