"""Suggestions of what may follow a prefix."""

import math
from itertools import takewhile
from typing import NamedTuple

import pytest

from onmt_entmax.search import suggest
from onmt_entmax.search.suggestions import Suggestion
from tests.search.enumeration import Tokens
from tests.search.table_steppers import TableStepper
from tests.search.tables import BOS, EOS, Fixed, RoundedUp, Table

# --- random tables, after the token 2 ---

SUGGESTED = [Table(seed, 2.0, spread=3.0, end=1.0) for seed in range(60)]


def test_continuations_are_the_support_from_the_most_probable_down() -> None:
    for table in SUGGESTED:
        continuations = suggest(TableStepper(excluded=()), [table], [2]).continuations
        support = {t: p for t, p in enumerate(table.log_probs((2,))) if p > -math.inf}
        assert dict(continuations) == pytest.approx(support)
        values = [value for _, value in continuations]
        assert values == sorted(values, reverse=True)


def test_a_prefix_has_the_log_probability_of_its_tokens() -> None:
    for table in SUGGESTED:
        suggestion = suggest(TableStepper(excluded=()), [table], [2])
        assert suggestion.log_prob == pytest.approx(table.log_probs(())[2])


def test_an_impossible_first_token_is_named() -> None:
    for table in SUGGESTED:
        suggestion = suggest(TableStepper(excluded=()), [table], [2])
        assert (suggestion.excluded_at == 0) == (table.log_probs(())[2] == -math.inf)


def ways_on(table: Table, path: Tokens, banned: Tokens, longest: int) -> list[Tokens]:
    """Return all ways from a path on: to an end symbol, the length, or where nothing is possible.

    At the length, a way ends with each token that is possible there.
    """
    ways: list[Tokens] = []
    for token, log_prob in enumerate(table.log_probs(path)):
        if log_prob == -math.inf or token in banned:
            continue
        if token == EOS or len(path) == longest:
            ways.append((token,))
        else:
            further = ways_on(table, (*path, token), banned, longest)
            ways += [(token, *way) for way in further]
    return ways or [()]


def common_start(ways: list[Tokens]) -> Tokens:
    """Return the tokens with which all ways begin."""
    columns = takewhile(lambda column: len(set(column)) == 1, zip(*ways, strict=False))
    return tuple(column[0] for column in columns)


class Completed(NamedTuple):
    """A suggestion after the token 2, and the tokens with which all ways on begin."""

    suggestion: Suggestion
    common: Tokens
    room: int
    """Tokens that the length limit leaves."""


@pytest.fixture(scope="module", params=[(), (3,), (2, 4)], ids=lambda banned: f"banned {banned}")
def completed(request: pytest.FixtureRequest) -> list[Completed]:
    """Suggestions of all tables, up to two to five tokens."""
    banned: Tokens = request.param
    suggestions = []
    for seed, table in enumerate(SUGGESTED):
        longest = 2 + seed % 4
        suggestion = suggest(
            TableStepper(excluded=()), [table], [2], max_length=longest, banned=banned
        )
        common = common_start(ways_on(table, (2,), banned, longest))
        suggestions.append(Completed(suggestion, common, room=longest - 1))
    return suggestions


def test_the_completion_is_what_all_ways_on_have_in_common(completed: list[Completed]) -> None:
    for suggestion, common, room in completed:
        tokens = common[:-1] if EOS in common else common
        assert suggestion.completion == tokens[:room]
    assert sum(len(suggestion.completion) > 0 for suggestion, _, _ in completed) > 5


def test_an_output_is_complete_if_all_ways_on_end_as_one(completed: list[Completed]) -> None:
    for suggestion, common, _ in completed:
        assert suggestion.complete == (EOS in common)
    assert sum(suggestion.complete for suggestion, _, _ in completed) > 5


def test_a_banned_token_is_not_a_continuation() -> None:
    for table in SUGGESTED:
        free = suggest(TableStepper(excluded=()), [table], [2]).continuations
        restricted = suggest(TableStepper(excluded=()), [table], [2], banned=[3]).continuations
        assert restricted == tuple(pair for pair in free if pair[0] != 3)


# --- models by hand ---


def test_where_all_is_banned_nothing_follows() -> None:
    model = Fixed({(): {2: 1.0}, (2,): {3: 1.0}, (2, 3): {EOS: 1.0}})
    suggestion = suggest(TableStepper(7), [model], banned=[3])
    assert suggestion.completion == (2,)
    assert not suggestion.complete


def test_a_suggestion_computes_each_step_once() -> None:
    model = Fixed({(2, 3): {4: 1.0}, (2, 3, 4): {EOS: 1.0}})
    stepper = TableStepper(7)
    assert suggest(stepper, [model], [2, 3]).completion == (4,)
    assert stepper.rows == 4  # after the start symbol and each of three tokens


def test_a_prefix_of_two_tokens_has_the_probability_of_both() -> None:
    model = Fixed({(): {2: 0.5, 3: 0.5}, (2,): {4: 0.5, EOS: 0.5}})
    suggestion = suggest(TableStepper(7), [model], [2, 4])
    assert suggestion.log_prob == pytest.approx(math.log(0.5 * 0.5))
    assert suggestion.excluded_at is None


def test_an_impossible_prefix_names_its_first_token_without_probability() -> None:
    """5 is possible neither at the start nor after 5."""
    model = Fixed({(): {2: 0.5, 3: 0.5}, (5,): {2: 1.0}})
    suggestion = suggest(TableStepper(7), [model], [5, 5])
    assert suggestion.log_prob == -math.inf
    assert suggestion.excluded_at == 0


def test_a_symbol_that_no_output_contains_is_not_a_completion() -> None:
    model = Fixed({(): {BOS: 1.0}, (BOS,): {2: 1.0}, (BOS, 2): {EOS: 1.0}})
    suggestion = suggest(TableStepper(7), [model])
    assert suggestion.continuations == suggestion.completion == ()
    assert not suggestion.complete


def test_a_suggestion_leaves_out_symbols_that_no_output_contains() -> None:
    suggestion = suggest(TableStepper(excluded=(0, 3)), [Table(0, 1.0)])
    assert {token for token, _ in suggestion.continuations} == {1, 2, 4}
    assert (suggestion.completion, suggestion.complete) == ((), False)


def test_a_probability_rounded_above_one_counts_as_one() -> None:
    model = RoundedUp({(): {2: 1.0}, (2,): {EOS: 1.0}})
    assert suggest(TableStepper(7), [model]).continuations == ((2, 0.0),)
