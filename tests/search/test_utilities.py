"""Utilities of minimum Bayes risk against their definitions and limits."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from onmt_entmax.search.utilities import Utility, most_utility, utilities
from tests.search.utilities import compared_parts, edit_similarity, sacrebleu_chrf

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


class TestChrfOfLongTexts:
    """Two texts with the same n-grams of up to five characters, and one other n-gram of six."""

    MIDDLE = "".join(map(chr, range(200, 226)))
    FIRST = f"wxyz{MIDDLE}wxyzbwxyz"
    SECOND = f"wxyzbwxyz{MIDDLE}wxyz"
    LENGTH = len(FIRST)

    @pytest.fixture
    def chrf(self) -> float:
        return float(utilities("chrf", [self.FIRST], [self.SECOND])[0, 0])

    def test_is_the_mean_of_six_orders(self, chrf: float) -> None:
        of_six_characters = self.LENGTH - 5
        assert chrf == pytest.approx(1 - 1 / (6 * of_six_characters))

    def test_stays_below_its_limit(self, chrf: float) -> None:
        assert chrf <= most_utility("chrf", self.SECOND)

    def test_is_more_than_with_one_character_more(self, chrf: float) -> None:
        """The limit would be wrong if it were that of texts of other lengths."""
        n = self.LENGTH
        precision, recall = n / (n + 1), 1.0
        # The F-measure with beta 2: (1 + beta^2) P R / (beta^2 P + R).
        assert chrf > 5 * precision * recall / (4 * precision + recall)
