"""`Option.needs`: conditions are of options and values that there are, and what meets them."""

from collections.abc import Mapping

import pytest

from onmt_entmax.config import Option
from onmt_entmax.options.needs import conditions_of
from onmt_entmax.options.train_table import training_options
from onmt_entmax.options.translate_table import translation_options

Options = Mapping[str, Option]

each_command = pytest.mark.parametrize(
    "options", [training_options(), translation_options()], ids=["train", "translate"]
)


@each_command
def test_options_need_options_of_the_same_command(options: Options) -> None:
    needed = {
        condition.name
        for option in options.values()
        if option.needs
        for condition in conditions_of(option.needs)
    }
    assert needed <= options.keys()


@each_command
def test_options_need_values_that_the_other_option_can_have(options: Options) -> None:
    """A text equals no number, so such a condition would never hold."""
    for option in options.values():
        for name, value in conditions_of(option.needs) if option.needs else ():
            rule = options[name].rule
            assert not value or rule.kind is dict or value in rule.names, (name, value)


@pytest.mark.parametrize(
    ("needs", "value", "holds"),
    [
        pytest.param("a", 1, True, id="on"),
        pytest.param("a", 0, False, id="off"),
        pytest.param("a", "none", False, id="off by a word"),
        pytest.param("a", "softmax", False, id="a function that is not sparse"),
        pytest.param("a: x", "x", True, id="the value"),
        pytest.param("a: x", "y", False, id="another value"),
        pytest.param("a: x", {"x": 0}, True, id="a mapping with the key"),
        pytest.param("a: x", {"y": 0}, False, id="a mapping without the key"),
    ],
)
def test_a_condition_holds(needs: str, value: object, holds: bool) -> None:
    (condition,) = conditions_of(needs)
    assert condition.holds({"a": value}) is holds


def test_several_conditions_have_or_between_them() -> None:
    assert conditions_of("a or b: x") == [("a", ""), ("b", "x")]
