"""Ranges of the numeric options of `train` and `translate`: every value in a range means something.

A new option that accepts 0 is listed below unless 0 is its default, and one that accepts -1 is
always listed. docs/options.md must say what the listed value means.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from onmt_entmax.config import Option
from onmt_entmax.options.stock import IGNORED, NEAREST, REFUSED
from onmt_entmax.options.train import training_options
from onmt_entmax.options.translate_table import translation_options

Options = Mapping[str, Option]


class Command(NamedTuple):
    """A command with its numeric options.

    Attributes:
        options: the numeric options that have an effect.
        zero: options that accept 0 although it is not their default.
        minus_one: options that accept -1.
    """

    options: Options
    zero: set[str]
    minus_one: set[str]


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
    zero={
        "accum_steps",
        "adam_beta1",
        "adam_beta2",
        "alpha_init_std",
        "attention_dropout",
        "dropout",
        "dropout_steps",
        "gpu_ranks",
        "max_grad_norm",
        "param_init",
        "replace_length",
        "seed",
        "src_subword_nbest",
        "start_decay_steps",
        "switchout_temperature",
        "tgt_subword_nbest",
        "tokendrop_temperature",
        "tokenmask_temperature",
        "valid_decode_size",
        "warmup_steps",
    },
    minus_one={
        "alpha_init_mean",
        "keep_checkpoint",
        "layers",
        "replace_length",
        "rnn_size",
        "seed",
        "src_subword_nbest",
        "tgt_subword_nbest",
        "word_vec_size",
    },
)
TRANSLATE = Command(
    numeric(translation_options()),
    zero={
        "gpu",
        "replace_length",
        "seed",
        "src_subword_nbest",
        "switchout_temperature",
        "tgt_subword_nbest",
        "tokendrop_temperature",
        "tokenmask_temperature",
    },
    minus_one={
        "gpu",
        "random_sampling_topk",
        "replace_length",
        "seed",
        "src_subword_nbest",
        "tgt_subword_nbest",
    },
)
each_command = pytest.mark.parametrize("command", [TRAIN, TRANSLATE], ids=["train", "translate"])


def options_that_accept(command: Command, value: object) -> set[str]:
    """Return the names of the numeric options whose rule accepts a value."""
    return {name for name, option in command.options.items() if option.rule.fits(value)}


@each_command
def test_ranges_are_finite(command: Command) -> None:
    rules = {name: option.rule for name, option in command.options.items()}
    infinite = [
        name for name, rule in rules.items() if not -math.inf < rule.low <= rule.high < math.inf
    ]
    assert infinite == []


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(math.nan, id="nan"),
        pytest.param(math.inf, id="infinity"),
        # The widest ranges are those of alpha_init_mean, from -100, and of counts, to 10**12.
        pytest.param(-200, id="below every range"),
        pytest.param(10**13, id="above every range"),
        pytest.param(True, id="boolean"),  # although True == 1
        pytest.param("x", id="text"),
        pytest.param(None, id="none"),
    ],
)
@each_command
def test_no_option_accepts_a_value_without_a_meaning(command: Command, value: object) -> None:
    assert options_that_accept(command, value) == set()


@each_command
def test_zero_is_accepted_by_the_listed_options_and_where_it_is_the_default(
    command: Command,
) -> None:
    by_default = {name for name, option in command.options.items() if option.default == 0}
    assert options_that_accept(command, 0) == command.zero | by_default


@each_command
def test_minus_one_is_accepted_by_the_listed_options(command: Command) -> None:
    assert options_that_accept(command, -1) == command.minus_one
