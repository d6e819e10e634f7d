"""Conditions on other options: which values meet them, and how users read them."""

import pytest

from onmt_entmax.config.conditions import AnyOf, Condition, Equals, HasKey, IsOn


@pytest.mark.parametrize(
    ("condition", "value", "holds"),
    [
        pytest.param(IsOn("a"), 1, True, id="on"),
        pytest.param(IsOn("a"), 0, False, id="off"),
        pytest.param(IsOn("a"), [], False, id="an empty list"),
        pytest.param(IsOn("a", off="none"), "wu", True, id="on by a name"),
        pytest.param(IsOn("a", off="none"), "none", False, id="off by a name"),
        pytest.param(Equals("a", "x"), "x", True, id="the value"),
        pytest.param(Equals("a", "x"), "y", False, id="another value"),
        pytest.param(HasKey("a", "x"), {"x": 0}, True, id="a mapping with the key"),
        pytest.param(HasKey("a", "x"), {"y": 0}, False, id="a mapping without the key"),
        pytest.param(AnyOf(IsOn("a"), Equals("a", "x")), "y", True, id="the first of two"),
        pytest.param(AnyOf(Equals("a", "x"), IsOn("a")), "y", True, id="the last of two"),
        pytest.param(AnyOf(Equals("a", "x"), Equals("a", "y")), "z", False, id="neither of two"),
    ],
)
def test_a_condition_holds_for_the_values_that_it_names(
    condition: Condition, value: object, holds: bool
) -> None:
    assert condition.holds({"a": value}) is holds


def test_the_text_of_a_condition_says_what_to_write() -> None:
    condition = AnyOf(Equals("search", "exact"), HasKey("data", "valid"), IsOn("beta"))
    assert str(condition) == "search: exact or data: valid or beta"
