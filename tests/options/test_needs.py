"""`Option.needs`: each condition is about an option and a value that exist."""

from collections.abc import Iterator, Mapping

import pytest

from onmt_entmax.config import AnyOf, Equals, Option
from onmt_entmax.config.conditions import SingleCondition
from onmt_entmax.options.train_table import training_options
from onmt_entmax.options.translate_table import translation_options

Options = Mapping[str, Option]

each_command = pytest.mark.parametrize(
    "options", [training_options(), translation_options()], ids=["train", "translate"]
)


def conditions_of(options: Options) -> Iterator[SingleCondition]:
    """Yield all conditions of the options, those of `AnyOf` one by one."""
    for option in options.values():
        if isinstance(option.needs, AnyOf):
            yield from option.needs.conditions
        elif option.needs is not None:
            yield option.needs


@each_command
def test_options_need_options_of_the_same_command(options: Options) -> None:
    needed = {condition.option for condition in conditions_of(options)}
    assert needed
    assert needed <= options.keys()


@each_command
def test_options_need_values_that_the_other_option_can_have(options: Options) -> None:
    """A text equals no number, so such a condition would never hold."""
    needed = [condition for condition in conditions_of(options) if isinstance(condition, Equals)]
    assert needed
    for condition in needed:
        assert condition.value in options[condition.option].rule.names
