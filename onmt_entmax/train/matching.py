"""What a checkpoint must have in common with the configuration of the run that continues it."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import CheckpointError, LoadedModel
from onmt_entmax.config import ModelConfig, TrainingSetup, ValidationConfig
from onmt_entmax.strings.task_record import recorded_task

# Options that the state of an optimiser depends on, besides the trained weights.
_OPTIMIZER = ("optim", "adam_beta1", "adam_beta2")
# Options of the model that may change when a run is resumed: no weight depends on them.
_FREE = (
    "param_init",
    "param_init_glorot",
    "alpha_init_mean",
    "alpha_init_std",
    "dropout",
    "attention_dropout",
)


class OtherRunError(CheckpointError):
    """A whole checkpoint, but of another model or optimiser than the configured ones."""


def check_same_run(
    folder: Path,
    loaded: LoadedModel,
    setup: TrainingSetup,
    weights_only: bool,
) -> None:
    """Compare the options of a checkpoint with the configured ones.

    Args:
        folder: of the checkpoint, for the error.
        loaded: the checkpoint.
        setup: the configured network and optimiser.
        weights_only: whether the run takes the weights alone, without the state of training. Then
            it may have another optimiser and freeze other weights.

    Raises:
        OtherRunError: names the first option that differs.
    """
    pairs = _network_options(loaded, setup.model, setup.record)
    if not weights_only:
        pairs |= {
            name: (loaded.options[name], getattr(setup.training.optimizer, name))
            for name in _OPTIMIZER
            if name in loaded.options
        }
    for name, (saved, configured) in pairs.items():
        of_optimiser = name in _OPTIMIZER or name.startswith("freeze_")
        if saved == configured or name in _FREE or (weights_only and of_optimiser):
            continue
        hint = "; -reset_optim all takes the weights alone" if of_optimiser else ""
        raise OtherRunError(
            f"{folder}: cannot continue: it was trained with {name} {saved!r}, the configuration "
            f"now says {configured!r}{hint}"
        )


def _network_options(
    loaded: LoadedModel, model: ModelConfig, record: Mapping[str, Any]
) -> dict[str, tuple[object, object]]:
    """Return the saved and the configured value of each option of the network, by name."""
    pairs: dict[str, tuple[object, object]] = {
        field.name: (getattr(loaded.config, field.name), getattr(model, field.name))
        for field in fields(model)
    }
    # The tokens that the network reads and writes; of copying, the vocabulary decides the rest.
    task = loaded.task
    configured_task = recorded_task({**record, "task": None}, languages=False)
    pairs["target_order"] = task.order, configured_task.order
    pairs["copying (copy_frequency)"] = task.copies, configured_task.copies
    return pairs


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
        options: by name; those of an older version lack some, which then had their defaults.
    """
    compared = [field for field in fields(ValidationConfig) if field.name != "valid_batch_size"]
    values = [options.get(field.name, field.default) for field in compared]
    return [(options.get("data") or {}).get("valid"), *values]
