"""Whether a checkpoint fits the configuration of the run that continues it."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.checkpoint import CheckpointError, LoadedModel
from onmt_entmax.config import TrainingSetup, ValidationConfig
from onmt_entmax.rules import shown
from onmt_entmax.strings.task_record import recorded_task

# Options of the network that may change when a run is resumed: no weight depends on them.
_FREE = (
    "param_init",
    "param_init_glorot",
    "alpha_init_mean",
    "alpha_init_std",
    "dropout",
    "attention_dropout",
)
# Options of the optimiser on which its state depends.
_OPTIMIZER = ("optim", "adam_beta1", "adam_beta2")


class OtherRunError(CheckpointError):
    """A whole checkpoint, but of another model or optimiser than the configured ones."""


class _Option(NamedTuple):
    """An option that a checkpoint and the configuration must have in common.

    Attributes:
        name: its name as users write it.
        saved: its value in the checkpoint.
        configured: its value in the configuration.
        is_of_optimiser: whether only the state of the optimiser depends on it, and no weight.
    """

    name: str
    saved: object
    configured: object
    is_of_optimiser: bool = False


def check_same_run(
    folder: Path,
    loaded: LoadedModel,
    setup: TrainingSetup,
    weights_only: bool,
) -> None:
    """Compare the options of a checkpoint with the configured ones.

    Args:
        folder: the folder of the checkpoint, for the error.
        loaded: the checkpoint.
        setup: the configured network and optimiser.
        weights_only: whether the run takes the weights alone, without the state of training. Then
            it may have another optimiser and freeze other weights.

    Raises:
        OtherRunError: names the first option that differs.
    """
    for option in _compared_options(loaded, setup):
        if option.saved == option.configured or (weights_only and option.is_of_optimiser):
            continue
        hint = "; -reset_optim all takes the weights alone" if option.is_of_optimiser else ""
        raise OtherRunError(
            f"{folder}: cannot continue: it was trained with {option.name} {shown(option.saved)}, "
            f"the configuration now says {shown(option.configured)}{hint}"
        )


def _compared_options(loaded: LoadedModel, setup: TrainingSetup) -> Iterator[_Option]:
    """Yield the options of the network and of the optimiser that must not change."""
    for field in fields(setup.model):
        if field.name not in _FREE:
            yield _Option(
                field.name,
                saved=getattr(loaded.config, field.name),
                configured=getattr(setup.model, field.name),
                # The optimiser has tensors for the weights that are not frozen.
                is_of_optimiser=field.name.startswith("freeze_"),
            )
    task = recorded_task({**setup.record, "task": None}, languages=False)
    yield _Option("target_order", loaded.task.order, task.order)
    # Which symbols are copied may not change either, but follows from the saved vocabulary.
    yield _Option("copying (copy_frequency)", loaded.task.copies, task.copies)
    for name in _OPTIMIZER:
        if name in loaded.options:
            yield _Option(
                name,
                saved=loaded.options[name],
                configured=getattr(setup.training.optimizer, name),
                is_of_optimiser=True,
            )


def measures_the_same(saved: Mapping[str, Any], configured: Mapping[str, Any]) -> bool:
    """Return whether validations of two runs can be compared.

    Args:
        saved: every option of one run by name.
        configured: every option of the other.
    """
    return _validation_of(saved) == _validation_of(configured)


def _validation_of(options: Mapping[str, Any]) -> list[Any]:
    """Return the development set, and how models are compared on it.

    Args:
        options: all options by name. An older version did not have some; these get their defaults.
    """
    compared = [field for field in fields(ValidationConfig) if field.name != "valid_batch_size"]
    values = [options.get(field.name, field.default) for field in compared]
    corpora = options.get("data")  # a stranger's folder may have anything there
    development_set = corpora.get("valid") if isinstance(corpora, Mapping) else None
    return [development_set, *values]
