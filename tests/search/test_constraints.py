"""Tokens that may not follow a prefix because an n-gram would be repeated.

`constraint_cases.py` has searches under constraints.
"""

import pytest

from onmt_entmax.search import Constraints
from tests.search.tables import EOS


@pytest.mark.parametrize(
    ("prefix", "repeats"),
    [
        pytest.param((2, 3, 4, 2, 3), {4}, id="it ends as another n-gram begins"),
        pytest.param((2, 3, 4, 2, 5), set(), id="another second token"),
        pytest.param((5, 3, 4, 2, 3), set(), id="another first token"),
        pytest.param((2, 3), set(), id="no n-gram yet"),
    ],
)
def test_a_token_is_forbidden_if_it_repeats_a_whole_ngram(
    prefix: tuple[int, ...], repeats: set[int]
) -> None:
    assert Constraints(block_ngram_repeat=3).forbidden(prefix, EOS) == repeats


@pytest.mark.parametrize("ignored", [2, 3, 4])
def test_any_token_of_an_ngram_may_allow_its_repetition(ignored: int) -> None:
    constraints = Constraints(block_ngram_repeat=3, ignore_when_blocking=frozenset({ignored}))
    assert constraints.forbidden((2, 3, 4, 2, 3), EOS) == set()


def test_an_ignored_token_may_be_repeated_where_no_other_may() -> None:
    constraints = Constraints(block_ngram_repeat=1, ignore_when_blocking=frozenset({2}))
    assert constraints.forbidden((2, 3), EOS) == {3}
