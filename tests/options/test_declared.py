"""OpenNMT-py's options of `train` and `translate`: each is read, or a message says why not."""

import dataclasses
import importlib
from collections.abc import Mapping

import pytest

from onmt_entmax import config
from onmt_entmax.opennmt import train_opts, translate_opts
from onmt_entmax.options import train_table, translate_table
from onmt_entmax.options.declared import options_of, transform_options
from onmt_entmax.options.stock import IGNORED, NEAREST, REFUSED
from onmt_entmax.options.train import training_options
from onmt_entmax.options.translate_table import translation_options

Options = Mapping[str, config.Option]

CONFIGURATIONS = [value for value in vars(config).values() if dataclasses.is_dataclass(value)]
WITHOUT_READER = {*REFUSED, *IGNORED, *NEAREST}
"""Options of OpenNMT-py that are refused with a reason, have no effect, or are read as others."""


@dataclasses.dataclass(frozen=True)
class Command:
    """A command and its options.

    Attributes:
        options: all that it takes.
        stock: those of OpenNMT-py's command, as it declares them.
        read_here: those that this package reads itself.
        other_defaults: stock options whose default differs here.
        other_types: stock options whose type differs here.
    """

    options: Options
    stock: Options
    read_here: frozenset[str]
    other_defaults: frozenset[str]
    other_types: frozenset[str]


TRAIN = Command(
    options=training_options(),
    stock=options_of(train_opts, {}),
    read_here=frozenset(train_table.OPTIONS | config.declared(*CONFIGURATIONS)),
    other_defaults=frozenset({"bucket_size", "tensorboard_log_dir"}),
    # OpenNMT-py has a text of YAML for `data`, and 0 and 1 for `input_feed`.
    other_types=frozenset({"data", "input_feed"}),
)
TRANSLATE = Command(
    options=translation_options(),
    stock=options_of(lambda parser: translate_opts(parser, dynamic=True), {}),
    read_here=frozenset(translate_table.OPTIONS),
    other_defaults=frozenset({"batch_size"}),
    other_types=frozenset(),
)
each_command = pytest.mark.parametrize("command", [TRAIN, TRANSLATE], ids=["train", "translate"])


@each_command
def test_no_option_of_opennmt_is_ignored_in_silence(command: Command) -> None:
    """Each is read here or by a transform, or is refused, replaced or named as without effect."""
    others = command.stock.keys() - WITHOUT_READER - transform_options().keys() - command.read_here
    # An option with one possible value has nothing to read.
    assert {name for name in others if len(command.options[name].rule.names) != 1} == set()


@each_command
def test_no_option_that_is_read_here_is_refused_or_replaced(command: Command) -> None:
    assert command.read_here & WITHOUT_READER == set()


def test_training_shares_its_file_with_build_vocab() -> None:
    """Every option of onmt_build_vocab is one of training, or without effect."""
    opts = importlib.import_module("onmt.opts")
    names = options_of(lambda parser: opts.dynamic_prepare_opts(parser, build_vocab_only=True), {})
    assert {"num_threads", "src_vocab"} <= names.keys()  # of that command alone, and of both
    assert names.keys() <= {*TRAIN.options, *IGNORED}


@each_command
def test_stock_options_keep_their_defaults(command: Command) -> None:
    changed = {
        name: (command.options[name].default, stock.default)
        for name, stock in command.stock.items()
        # None, False and an empty list are the same: not given.
        if (command.options[name].default or None) != (stock.default or None)
    }
    assert changed.keys() == command.other_defaults, changed


@each_command
def test_stock_options_keep_their_types(command: Command) -> None:
    changed = {
        name: (command.options[name].rule.kind, stock.rule.kind)
        for name, stock in command.stock.items()
        if command.options[name].rule.kind is not stock.rule.kind
    }
    assert changed.keys() == command.other_types, changed
