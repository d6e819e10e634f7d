"""All options of `train` and `translate`: OpenNMT-py's, ranges of numbers, and defaults."""

import dataclasses
import importlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from onmt_entmax import config
from onmt_entmax.opennmt import train_opts, translate_opts
from onmt_entmax.options import train_table, translate_table
from onmt_entmax.options.declared import options_of, transform_options
from onmt_entmax.options.stock import IGNORED, NEAREST, REFUSED
from onmt_entmax.options.train import TrainingSetup, training_options, training_setup
from onmt_entmax.options.translate_table import translation_options
from tests.toy import write_corpus

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
        zero: options of another default for which 0 means something; a new option of which it is
            said in docs/options.md belongs here.
        minus_one: options for which -1 means something, as for `zero`.
    """

    options: Options
    stock: Options
    read_here: frozenset[str]
    other_defaults: frozenset[str]
    other_types: frozenset[str]
    zero: frozenset[str]
    minus_one: frozenset[str]


TRAIN = Command(
    options=training_options(),
    stock=options_of(train_opts, {}),
    read_here=frozenset(train_table.OPTIONS | config.declared(*CONFIGURATIONS)),
    other_defaults=frozenset({"bucket_size", "tensorboard_log_dir"}),
    # OpenNMT-py has a text of YAML for `data`, and 0 and 1 for `input_feed`.
    other_types=frozenset({"data", "input_feed"}),
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
    options=translation_options(),
    stock=options_of(lambda parser: translate_opts(parser, dynamic=True), {}),
    read_here=frozenset(translate_table.OPTIONS),
    other_defaults=frozenset({"batch_size"}),
    other_types=frozenset(),
    zero=frozenset(
        "gpu replace_length seed src_subword_nbest switchout_temperature tgt_subword_nbest "
        "tokendrop_temperature tokenmask_temperature".split()
    ),
    minus_one=frozenset(
        "gpu random_sampling_topk replace_length seed src_subword_nbest tgt_subword_nbest".split()
    ),
)
each_command = pytest.mark.parametrize("command", [TRAIN, TRANSLATE], ids=["train", "translate"])


# --- OpenNMT-py's options --------------------------------------------------------------------


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


# --- ranges ----------------------------------------------------------------------------------


def of_numbers(command: Command) -> Options:
    """Return the options of a command that are numbers and have an effect."""
    return {
        name: option
        for name, option in command.options.items()
        if option.rule.kind in (int, float) and name not in WITHOUT_READER
    }


LARGEST = 10**13  # counts may be up to 10**12


@each_command
def test_ranges_of_numbers_are_finite(command: Command) -> None:
    rules = {name: option.rule for name, option in of_numbers(command).items()}
    wide = [n for n, rule in rules.items() if not -LARGEST < rule.low <= rule.high < LARGEST]
    assert wide == []


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 1e30, -200, True, "x", None], ids=repr
)
@each_command
def test_no_range_has_a_value_that_means_nothing(command: Command, value: object) -> None:
    fitting = [n for n, option in of_numbers(command).items() if option.rule.fits(value)]
    assert fitting == []


@each_command
def test_zero_fits_where_it_means_something(command: Command) -> None:
    fitting = {n for n, option in of_numbers(command).items() if option.rule.fits(0)}
    by_default = {n for n, option in of_numbers(command).items() if option.default == 0}
    assert fitting - by_default == command.zero


@each_command
def test_minus_one_fits_where_it_means_something(command: Command) -> None:
    fitting = {n for n, option in of_numbers(command).items() if option.rule.fits(-1)}
    assert fitting == command.minus_one


# --- defaults --------------------------------------------------------------------------------


@pytest.fixture
def setup(tmp_path: Path) -> TrainingSetup:
    """The setup of a training by required options alone."""
    corpora = {"c": write_corpus(tmp_path, "train", size=2, seed=1)}
    return training_setup(["-data", str(corpora), "-save_model", "run"])


def test_each_field_has_the_default_of_its_option(setup: TrainingSetup) -> None:
    parts = (setup.run, setup.data, setup.vocabulary, setup.model, setup.training, setup.validation)
    differing = {
        field.name: getattr(part, field.name)
        for part in parts
        for field in dataclasses.fields(part)
        if field.default is not dataclasses.MISSING
        and field.name != "save_model"
        and getattr(part, field.name) != field.default
    }
    assert differing == {}


def test_the_optimiser_is_the_default_one(setup: TrainingSetup) -> None:
    assert setup.training.optimizer == config.OptimizerConfig()


def test_the_record_has_defaults_too(setup: TrainingSetup) -> None:
    assert setup.record["adam_beta1"] == 0.9
