"""Tokens that the output of one sentence may not have, against enumeration."""

import math
from collections.abc import Callable

import pytest

from onmt_entmax.search import (
    Request,
    Sample,
    Sampling,
    SearchConfig,
    SearchResult,
    beam_search,
    exact_search,
    sample,
    verify,
)
from tests.search.enumeration import EnumeratedSupport, Tokens, enumerate_support
from tests.search.table_steppers import TableStepper
from tests.search.tables import EOS, Table

TABLES = [Table(seed, alpha, end=1.0) for seed in range(12) for alpha in (1.5, 2.0)]
BANNED = [{2}, {3, 4}, set(), {2, 3, 4}]
LENGTH = 5

Search = Callable[[Table, set[int]], SearchResult]
"""Searches a table for the outputs that have none of some tokens."""


def allowed(table: Table, banned: set[int]) -> EnumeratedSupport:
    """Return what a table may write without some tokens; these are in `excluded`."""
    stepper = TableStepper(excluded=(0, *banned))
    return enumerate_support(stepper, [table], LENGTH, limit=100_000)


def most_probable(support: EnumeratedSupport) -> Tokens:
    """Return the most probable sequence of a support that has any."""
    return max(support.sequences, key=support.sequences.__getitem__)


def config(n_best: int = 0) -> SearchConfig:
    """Return options of a beam that never drops a prefix of these tables."""
    return SearchConfig(beam_size=200, n_best=n_best, max_length=LENGTH)


def by_beam(table: Table, banned: set[int]) -> SearchResult:
    """Search in a batch with a sentence of the same table that has no ban."""
    with_ban, _ = beam_search(TableStepper(), [table, table], config(), banned=[banned, ()])
    return with_ban


def by_exact_search(table: Table, banned: set[int]) -> SearchResult:
    """Search the sentence alone."""
    return exact_search(TableStepper(), Request([table], banned=[banned]), config())


@pytest.mark.parametrize("search", [by_beam, by_exact_search])
@pytest.mark.parametrize("banned", BANNED, ids=str)
def test_all_outputs_without_the_tokens_are_found(search: Search, banned: set[int]) -> None:
    for table in TABLES:
        log_probs = {h.tokens: h.log_prob for h in search(table, banned).hypotheses}
        assert log_probs == pytest.approx(allowed(table, banned).sequences), table


@pytest.mark.parametrize("search", [by_beam, by_exact_search])
def test_the_probability_of_the_tokens_is_counted_as_excluded(search: Search) -> None:
    for table in TABLES:
        certificate = search(table, {2}).certificate
        prefixes = allowed(table, {2}).excluded
        assert certificate.excluded == pytest.approx(sum(map(math.exp, prefixes.values()))), table


@pytest.mark.parametrize("search", [by_beam, by_exact_search])
def test_the_most_probable_excluded_prefix_is_the_bound_of_what_is_excluded(search: Search) -> None:
    for table in TABLES:
        certificate = search(table, {2}).certificate
        largest = max(allowed(table, {2}).excluded.values(), default=-math.inf)
        assert certificate.log_excluded_bound == pytest.approx(largest), table


def test_a_neighbour_keeps_its_tokens() -> None:
    for table in TABLES:
        _, neighbour = beam_search(TableStepper(), [table, table], config(), banned=[{2, 3}, ()])
        (alone,) = beam_search(TableStepper(), [table], config())
        outputs = [hypothesis.tokens for hypothesis in neighbour.hypotheses]
        assert outputs == [hypothesis.tokens for hypothesis in alone.hypotheses], table


def test_a_search_that_starts_again_keeps_the_ban() -> None:
    """The tokens of the most probable output are banned; the most probable other one is found.

    The search of a softmax model begins with one prefix, and may start again with the full beam. It
    has done so if it computed more than a search with the full beam alone.
    """
    compared = 0
    for table in (Table(seed, 1.0, spread=1.0) for seed in range(40)):
        banned = set(most_probable(allowed(table, set())))
        softmax, other = TableStepper(dense=True), TableStepper(dense=False)
        (result,) = beam_search(softmax, [table], config(n_best=1), banned=[banned])
        (at_once,) = beam_search(other, [table], config(n_best=1), banned=[banned])
        has_started_again = result.rows > at_once.rows
        if has_started_again and result.certificate.level != "none":
            assert result.hypotheses[0].tokens == most_probable(allowed(table, banned)), table
            compared += 1
    assert compared > 10


def test_a_search_may_begin_with_a_banned_token_that_is_forced() -> None:
    for table in TABLES:
        (result,) = beam_search(TableStepper(), [table], config(), prefixes=[(2,)], banned=[{2}])
        every_output = allowed(table, set()).sequences
        expected = {
            tokens: log_prob
            for tokens, log_prob in every_output.items()
            if tokens[:1] == (2,) and 2 not in tokens[1:]
        }
        log_probs = {h.tokens: h.log_prob for h in result.hypotheses}
        assert log_probs == pytest.approx(expected), table


def test_verification_repeats_the_ban() -> None:
    for table in TABLES:
        result = by_beam(table, {2})
        repeated = verify(TableStepper(), Request([table], banned=[{2}]), result, config())
        assert repeated.agrees, table


SAMPLED = Table(3, alpha=1.0)
SAMPLES = 4000
# Five standard deviations of a share of these: sqrt(0.25 / 4000) = 0.008.
SHARE_ERROR = 0.04


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    """Samples that may not contain 2."""
    (of_the_sentence,) = sample(
        TableStepper(),
        Request([SAMPLED], banned=[{2}]),
        Sampling(),
        count=SAMPLES,
        max_length=LENGTH,
    )
    return of_the_sentence


def test_samples_lack_the_tokens(samples: list[Sample]) -> None:
    assert sum(2 not in output.tokens for output in samples) == SAMPLES


@pytest.mark.parametrize("token", [3, 4])
def test_samples_follow_the_distribution_of_the_other_tokens(
    samples: list[Sample], token: int
) -> None:
    log_probs = SAMPLED.log_probs(())
    allowed_mass = sum(math.exp(log_probs[other]) for other in (EOS, 3, 4))
    share = sum(output.tokens[:1] == (token,) for output in samples) / SAMPLES
    assert share == pytest.approx(math.exp(log_probs[token]) / allowed_mass, abs=SHARE_ERROR)


def test_samples_may_begin_with_a_banned_token_that_is_forced() -> None:
    request = Request([SAMPLED], prefixes=[(2,)], banned=[{2}])
    (samples,) = sample(TableStepper(), request, Sampling(), count=SAMPLES, max_length=LENGTH)
    assert len(samples) == SAMPLES
    for output in samples:
        first, *others = output.tokens
        assert first == 2
        assert 2 not in others


def test_bans_for_fewer_sentences_than_there_are_are_refused() -> None:
    with pytest.raises(ValueError, match="banned has 1 for 2 sentences"):
        beam_search(TableStepper(), TABLES[:2], config(), banned=[()])


@pytest.mark.parametrize("token", [-1, 5])
def test_a_banned_token_outside_the_vocabulary_is_refused(token: int) -> None:
    with pytest.raises(ValueError, match=f"token {token} is not in the vocabulary"):
        beam_search(TableStepper(), TABLES[:1], config(), banned=[{token}])
