"""Ranges of numeric options of `train` and `translate`: finite, and each value means something.

A new option that accepts 0 or -1 without having it as its default must be added below, and
docs/options.md must say what that value means.
"""

from collections.abc import Mapping
from typing import NamedTuple

import pytest

from onmt_entmax.config import Option
from onmt_entmax.options.stock import IGNORED, NEAREST, REFUSED
from onmt_entmax.options.train import training_options
from onmt_entmax.options.translate_table import translation_options

Options = Mapping[str, Option]

LARGEST = 10**13  # counts may be up to 10**12


class Command(NamedTuple):
    """A command with its numeric options."""

    options: Options
    """Those that have an effect."""
    zero: frozenset[str]
    """Options for which 0 means something, but is not the default."""
    minus_one: frozenset[str]
    """Options for which -1 means something."""


def numeric(options: Options) -> Options:
    """Return the options that are numbers and have an effect."""
    without_effect = {*REFUSED, *IGNORED, *NEAREST}
    return {
        name: option
        for name, option in options.items()
        if option.rule.kind in (int, float) and name not in without_effect
    }


TRAIN = Command(
    numeric(training_options()),
    zero=frozenset(
        "accum_steps adam_beta1 adam_beta2 alpha_init_std attention_dropout "
        "dropout dropout_steps gpu_ranks max_grad_norm param_init replace_length seed "
        "src_subword_nbest start_decay_steps switchout_temperature tgt_subword_nbest "
        "tokendrop_temperature tokenmask_temperature valid_decode_size warmup_steps".split()
    ),
    minus_one=frozenset(
        "alpha_init_mean keep_checkpoint layers replace_length rnn_size seed src_subword_nbest "
        "tgt_subword_nbest word_vec_size".split()
    ),
)
TRANSLATE = Command(
    numeric(translation_options()),
    zero=frozenset(
        "gpu replace_length seed src_subword_nbest switchout_temperature tgt_subword_nbest "
        "tokendrop_temperature tokenmask_temperature".split()
    ),
    minus_one=frozenset(
        "gpu random_sampling_topk replace_length seed src_subword_nbest tgt_subword_nbest".split()
    ),
)
each_command = pytest.mark.parametrize("command", [TRAIN, TRANSLATE], ids=["train", "translate"])


def options_that_take(command: Command, value: object) -> set[str]:
    """Return the names of the numeric options whose range has a value."""
    return {name for name, option in command.options.items() if option.rule.fits(value)}


@each_command
def test_ranges_of_numbers_are_finite(command: Command) -> None:
    rules = {name: option.rule for name, option in command.options.items()}
    wide = [n for n, rule in rules.items() if not -LARGEST < rule.low <= rule.high < LARGEST]
    assert wide == []


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 1e30, -200, True, "x", None], ids=repr
)
@each_command
def test_no_range_has_a_value_that_means_nothing(command: Command, value: object) -> None:
    assert options_that_take(command, value) == set()


@each_command
def test_zero_fits_where_it_means_something(command: Command) -> None:
    by_default = {name for name, option in command.options.items() if option.default == 0}
    assert options_that_take(command, 0) - by_default == command.zero


@each_command
def test_minus_one_fits_where_it_means_something(command: Command) -> None:
    assert options_that_take(command, -1) == command.minus_one
