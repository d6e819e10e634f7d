"""Utilities of minimum Bayes risk against their definitions and limits."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from onmt_entmax.search.utilities import Utility, most_utility, utilities
from tests.search.utility_definitions import compared_parts, edit_similarity, sacrebleu_chrf

TEXTS = st.lists(st.sampled_from(["a", "b", "ab", "c "]), max_size=9).map(" ".join)

utilities_by_definition = pytest.mark.parametrize(
    ("utility", "definition"), [("edit_distance", edit_similarity), ("chrf", sacrebleu_chrf)]
)
compared_utilities = pytest.mark.parametrize("utility", ["edit_distance", "chrf"])


@utilities_by_definition
@given(TEXTS, TEXTS)
def test_utilities_are_those_of_the_field(
    utility: Utility, definition: Callable[[str, str], float], first: str, second: str
) -> None:
    candidates, references = [first, "x"], [second, "a", first]
    table = utilities(utility, candidates, references)
    expected = [[definition(text, reference) for reference in references] for text in candidates]
    np.testing.assert_allclose(table, expected, atol=1e-12)


@compared_utilities
@given(TEXTS)
def test_the_utility_of_the_right_text_is_1(utility: Utility, text: str) -> None:
    assert utilities(utility, [text], [text]) == pytest.approx(1)


@compared_utilities
@given(TEXTS, TEXTS)
def test_utilities_of_other_texts_stay_below_their_limit(
    utility: Utility, first: str, second: str
) -> None:
    assume(compared_parts(utility, first) != compared_parts(utility, second))
    limit = most_utility(utility, second)
    assert utilities(utility, [first], [second])[0, 0] <= limit + 1e-12


# --- chrF of long texts, which differ only in n-grams of six characters ----------------------

MIDDLE = "".join(map(chr, range(200, 226)))  # 26 characters that the ends do not have
FIRST = f"wxyz{MIDDLE}wxyzbwxyz"
SECOND = f"wxyzbwxyz{MIDDLE}wxyz"
"""It has the n-grams of the first text of up to five characters, and one other of six."""


@pytest.fixture
def chrf() -> float:
    return float(utilities("chrf", [FIRST], [SECOND])[0, 0])


def test_chrf_is_the_mean_of_six_orders(chrf: float) -> None:
    of_six_characters = len(FIRST) - 5
    assert chrf == pytest.approx(1 - 1 / (6 * of_six_characters))


def test_chrf_of_long_texts_stays_below_its_limit(chrf: float) -> None:
    assert chrf <= most_utility("chrf", SECOND)


def test_chrf_of_a_longer_text_may_be_lower(chrf: float) -> None:
    """So the limit must not be that of texts of other lengths alone."""
    n = len(SECOND)
    precision, recall = n / (n + 1), 1.0  # of a text with one character more
    # The F-measure with beta 2: (1 + beta^2) P R / (beta^2 P + R).
    assert chrf > 5 * precision * recall / (4 * precision + recall)
