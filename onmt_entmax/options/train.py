"""Read the options of `train`: check them, and split them into the configurations of modules.

`train_table.py` and `train_alphas.py` declare them, `train_replacements.py` replaces values of
OpenNMT-py that mean something else here, `corpora.py` reads the entries of `data`, `train_run.py`
makes the configuration of the run, and `train_misfits.py` says which options do not fit each other.
"""

from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.config import (
    ConfigError,
    CorpusConfig,
    DataConfig,
    ModelConfig,
    OptimizerConfig,
    TrainingConfig,
    TrainingSetup,
    ValidationConfig,
    VocabularyConfig,
)
from onmt_entmax.data.training import VALID
from onmt_entmax.files import read_lines
from onmt_entmax.options.corpora import ignored_keys, read_corpora, unread_transform_options
from onmt_entmax.options.declared import transform_options
from onmt_entmax.options.given import Options
from onmt_entmax.options.groups import NOT_SET, PARTS_WITH_ALPHA, SIDES_OF
from onmt_entmax.options.reader import read_options
from onmt_entmax.options.train_alphas import ATTENTION_ALPHAS
from onmt_entmax.options.train_misfits import misfits
from onmt_entmax.options.train_replacements import with_replacements
from onmt_entmax.options.train_run import run_config
from onmt_entmax.options.train_table import training_options
from onmt_entmax.strings.marks import is_language
from onmt_entmax.strings.task import StringTask, TaskError
from onmt_entmax.strings.task_record import recorded_task

# Options with a schedule: training goes through its values; the network is built with the first.
_SCHEDULES = ("dropout", "attention_dropout")


def training_setup(arguments: Sequence[str]) -> TrainingSetup:
    """Read the command line of `train` and the YAML file that it names.

    Args:
        arguments: the command line, without the name of the program and `train`.

    Raises:
        OptionError: names the first option that is wrong, and why.
    """
    unresolved = with_replacements(read_options(training_options(), arguments))
    corpora = _corpora(unresolved)
    # A checkpoint records options that can be set again, without values that follow from others.
    recorded = _without_unread_transforms(unresolved, corpora)
    options = _resolved(recorded)
    for name, reason in misfits(options):
        raise options.error(name, reason)
    values = options.values
    model = _model_config(options)
    seed = max(values["seed"], 0)  # -1, OpenNMT-py's "not set", is 0, so that runs are repeatable
    return TrainingSetup(
        run=run_config(options, seed),
        data=options.make(
            DataConfig,
            corpora=tuple(corpus for corpus in corpora if corpus.name != VALID),
            valid=next((corpus for corpus in corpora if corpus.name == VALID), None),
            task=_task(options),
            seed=seed,
            transform_options={name: values[name] for name in transform_options()},
        ),
        vocabulary=options.make(VocabularyConfig),
        model=model,
        training=_training_config(options, model.rnn_size),
        validation=options.make(ValidationConfig, selection=values["selection"]),
        record={name: recorded[name] for name in sorted(recorded.values) if name != "config"},
        notes=tuple(options.notes.lines()),
        warnings=tuple(options.notes.warnings),
    )


def _corpora(options: Options) -> list[CorpusConfig]:
    """Return the corpora of `data`, the development set included; note keys without effect.

    Raises:
        OptionError: if there is no corpus to train on, or one is wrong.
    """
    if not set(options["data"]) - {VALID}:
        raise options.error("data", "needs a corpus besides valid")
    corpora = read_corpora(options)
    options.notes.ignored += ignored_keys(options["data"])
    return corpora


def _without_unread_transforms(options: Options, corpora: Sequence[CorpusConfig]) -> Options:
    """Return the options with the defaults of those that no corpus' transforms read; note these."""
    unread = unread_transform_options(options.values, corpora)
    options.notes.ignored += [f"{name} (no transform reads it)" for name in unread]
    defaults = {name: option.default for name, option in unread.items()}
    return options.with_values(**defaults)


def _resolved(options: Options) -> Options:
    """Return the options with values that follow from others: sizes, alphas and limits.

    Raises:
        OptionError: if encoder and decoder have different sizes.
    """
    options = options.with_values(**_sizes(options), **_alphas(options))
    has_other_limit = options["train_epochs"] or options["max_seconds"]
    if has_other_limit and not options.is_set("train_steps"):
        options = options.with_values(train_steps=None)
    return options


def _sizes(options: Options) -> dict[str, int]:
    """Return layers and sizes of each side of the network, and the size that both share.

    Raises:
        OptionError: if encoder and decoder have different sizes.
    """
    sizes = {}
    for both, sides in SIDES_OF.items():  # as in OpenNMT-py, the option for both sides wins
        for side in sides:
            sizes[side] = options[side] if options[both] == NOT_SET else options[both]
    if sizes["enc_rnn_size"] != sizes["dec_rnn_size"]:
        raise options.error("enc_rnn_size", f"must equal dec_rnn_size, {sizes['dec_rnn_size']}")
    return {**sizes, "rnn_size": sizes["dec_rnn_size"]}


def _alphas(options: Options) -> dict[str, float | str]:
    """Return the alphas of parts whose function implies one, such as `softmax`: 1, or `learned`."""
    alphas = {part: ATTENTION_ALPHAS[options[f"{part}_function"]] for part in PARTS_WITH_ALPHA}
    return {f"{part}_alpha": alpha for part, alpha in alphas.items() if alpha is not None}


def _model_config(options: Options) -> ModelConfig:
    """Return the network; its dropout is the first of the schedule.

    Raises:
        OptionError: names the option that does not fit others.
    """
    first = {name: options[name][0] for name in _SCHEDULES}
    try:
        return options.make(ModelConfig, **first)
    except ConfigError as error:
        raise options.error(error.key, error.reason) from None


def _training_config(options: Options, rnn_size: int) -> TrainingConfig:
    """Return loss, limits and schedules of the training of a network with states of a size."""
    schedules = {name: tuple(options[name]) for name in _SCHEDULES}
    # OpenNMT-py accumulates `accum_count` batches in each of `world_size` processes.
    accum_count = tuple(number * options["world_size"] for number in options["accum_count"])
    return options.make(
        TrainingConfig,
        optimizer=options.make(OptimizerConfig, rnn_size=rnn_size),
        accum_count=accum_count,
        **schedules,
    )


def _task(options: Options) -> StringTask:
    """Return the task of the data.

    Without the option `task`, it is inflection if the first training source begins with a language.

    Raises:
        OptionError: if `task` or `target_order` is wrong.
    """
    try:
        return recorded_task(options.values, _begins_with_language(options))
    except TaskError as error:
        key = "task" if options.is_set("task") else "target_order"
        raise options.error(key, str(error).removeprefix(f"{key}: ")) from None


def _begins_with_language(options: Options) -> bool:
    """Return whether the first training source begins with the token of a language."""
    first_corpus = next(corpus for name, corpus in options["data"].items() if name != VALID)
    lines = read_lines(Path(first_corpus["path_src"]))
    first_token = next((line.split()[0] for line in lines if line.strip()), "")
    return is_language(first_token)
