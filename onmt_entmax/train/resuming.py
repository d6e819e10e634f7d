"""Resuming: the checkpoint that a run continues from, and what it must have in common with it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from onmt_entmax.checkpoint import (
    STATE,
    CheckpointError,
    LoadedModel,
    checkpoint_steps,
    find_model,
    load,
    read_training_state,
)
from onmt_entmax.config import ModelConfig, RunConfig, TrainingConfig, ValidationConfig
from onmt_entmax.model import freeze
from onmt_entmax.strings.task_record import recorded_task
from onmt_entmax.train.optimiser import build_optimizer

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
# What the state of a run holds as long as there is no best checkpoint.
_NO_BEST = {"best": None, "best_step": -1}


class OtherRunError(CheckpointError):
    """A whole checkpoint, but of another model or optimiser than the configured ones."""


@dataclass(frozen=True)
class Resumed:
    """A checkpoint to continue from."""

    loaded: LoadedModel
    state: dict[str, Any] | None  # None if only the weights are used

    @property
    def step(self) -> int:
        """Updates done."""
        return 0 if self.state is None else int(self.state["run"]["step"])


def resume(
    run: RunConfig,
    model: ModelConfig,
    training: TrainingConfig,
    record: Mapping[str, Any],
    tell: Callable[[str], None],
) -> Resumed | None:
    """Load the checkpoint to continue from, or return None for a new run.

    Args:
        run: names the checkpoint and the folder to write to.
        model: the configured network, which must be the checkpoint's.
        training: the configured optimiser and limits.
        record: every option by name.
        tell: receives a warning for each damaged checkpoint that is skipped, and if the best one is
            gone.

    Raises:
        CheckpointError: there is no checkpoint, it has another model or optimiser, all of them are
            damaged, it has reached a limit already and the run folder is another, or the run
            folder holds checkpoints that this run does not continue.
    """
    if run.train_from is None:
        _check_folder(run, None)
        return None
    folder, resumed = _newest_readable(run, model, training, record, tell)
    resumed.loaded.model.update_dropout(model.dropout, model.attention_dropout)
    if resumed.state is not None:
        other_measure = _validation_of(resumed.loaded.options) != _validation_of(record)
        _reset_best(resumed.state["run"], run, other_measure, tell)
    _check_folder(run, resumed)
    limit = _limit_reached(resumed, training)
    if limit is not None and not same_folder(run):
        raise CheckpointError(
            f"{folder}: nothing is left to train: {limit}; set a higher limit, or take the "
            "weights alone with -reset_optim all, which counts from 0"
        )
    tell(f"continuing from {folder}")
    if limit is not None:
        tell(f"note: nothing is left to train: {limit}")
    return resumed


def _newest_readable(
    run: RunConfig,
    model: ModelConfig,
    training: TrainingConfig,
    record: Mapping[str, Any],
    tell: Callable[[str], None],
) -> tuple[Path, Resumed]:
    """Return the checkpoint of `train_from`, of a run folder the newest that can be read.

    Args and raises: as :func:`resume`.
    """
    named = Path(str(run.train_from))
    steps = checkpoint_steps(named)
    candidates = [named / f"step_{step}" for step in reversed(steps)] or [find_model(named)]
    for older in candidates[:-1]:
        try:
            return older, _load_matching(older, model, training, record, run.reset_optim == "all")
        except OtherRunError:
            raise
        except CheckpointError as error:
            tell(f"warning: {error}; trying the checkpoint before")
    oldest = candidates[-1]
    return oldest, _load_matching(oldest, model, training, record, run.reset_optim == "all")


def _reset_best(
    state: dict[str, Any], run: RunConfig, other_measure: bool, tell: Callable[[str], None]
) -> None:
    """Forget the best checkpoint so far where it no longer counts.

    Args:
        state: entry `run` of `Trainer.state_dict`; changed in place.
        run: names the folder to write to.
        other_measure: whether validation measures something else now.
        tell: receives a warning if the best checkpoint is gone.
    """
    if other_measure or not same_folder(run):
        # Its value is of another measure, or its checkpoint in another folder.
        state.update(_NO_BEST, best_planned=None, waited=0)
        if other_measure:
            state["previous_loss"] = None
        return
    best = state["best_step"]
    if best > 0 and best not in checkpoint_steps(Path(run.save_model)):
        tell(
            f"warning: {run.save_model}: step_{best}, the best checkpoint so far, is gone; the "
            "best of those to come takes its place"
        )
        # `best_planned` and `waited` stay: early stopping compares values, not checkpoints.
        state.update(_NO_BEST)


def _limit_reached(resumed: Resumed, training: TrainingConfig) -> str | None:
    """Return which limit a checkpoint has reached already, for a message; or None."""
    if resumed.state is None:
        return None
    counters, epoch = resumed.state["run"], resumed.state["position"]["epoch"]
    ending = sum(counters.get(name) or 0.0 for name in ("validating", "saving"))
    limit = training.reached(
        counters["step"], epoch, counters["seconds"] + ending, counters["waited"]
    )
    if limit is None:
        return None
    return f"step {counters['step']:,}, {limit} {getattr(training, limit):,}"


def _validation_of(options: Mapping[str, Any]) -> list[Any]:
    """Return the development set, and how models are compared on it."""
    names = [field.name for field in fields(ValidationConfig) if field.name != "valid_batch_size"]
    return [(options.get("data") or {}).get("valid"), *map(options.get, names)]


def _load_matching(
    folder: Path,
    model: ModelConfig,
    training: TrainingConfig,
    record: Mapping[str, Any],
    weights_only: bool,
) -> Resumed:
    """Return a checkpoint that fits the configuration.

    Raises:
        OtherRunError: names the first option that differs.
        CheckpointError: a file is damaged.
    """
    loaded = load(folder)
    _check_same_model(folder, loaded, model, training, record, weights_only)
    freeze(loaded.model, model)  # decides which weights the optimiser has
    if weights_only:
        return Resumed(loaded, None)
    # Weights, averages and two moments in double precision, random states of many processes.
    at_most = 64 * sum(weight.numel() for weight in loaded.model.parameters()) + 2**26
    state = read_training_state(folder, at_most)
    try:
        fits = _can_be_restored(state, loaded, training)
    except Exception:  # whatever a state that was changed by hand may raise
        fits = False
    if not fits:
        raise CheckpointError(f"{folder / STATE}: damaged: not a state of this model's training")
    return Resumed(loaded, state)


def _check_same_model(
    folder: Path,
    loaded: LoadedModel,
    model: ModelConfig,
    training: TrainingConfig,
    record: Mapping[str, Any],
    weights_only: bool,
) -> None:
    """Compare the options of a checkpoint with the configured ones.

    Raises:
        OtherRunError: names the first option that differs.
    """
    # Of each option the saved and the configured value.
    pairs = {
        field.name: (getattr(loaded.config, field.name), getattr(model, field.name))
        for field in fields(model)
    }
    # The tokens that the network reads and writes; of copying, the vocabulary decides the rest.
    task, configured_task = loaded.task, recorded_task({**record, "task": None}, languages=False)
    pairs["target_order"] = task.order, configured_task.order
    pairs["copying (copy_frequency)"] = task.copies, configured_task.copies
    if not weights_only:
        pairs |= {
            name: (loaded.options[name], getattr(training.optimizer, name))
            for name in _OPTIMIZER
            if name in loaded.options
        }
    for name, (saved, configured) in pairs.items():
        frozen = name.startswith("freeze_")
        if saved == configured or name in _FREE or (frozen and weights_only):
            continue
        hint = ""
        if not weights_only and (frozen or name in _OPTIMIZER):
            hint = "; -reset_optim all takes the weights alone"
        raise OtherRunError(
            f"{folder}: cannot continue: it was trained with {name} {saved!r}, the configuration "
            f"now says {configured!r}{hint}"
        )


def _can_be_restored(
    state: Mapping[str, Any], loaded: LoadedModel, training: TrainingConfig
) -> bool:
    """Return whether a training state fits a model; an error says that it does not.

    Tensors of wrong types or shapes would crash torch.
    """
    numbers = [*state["run"].values(), *state["position"].values()]
    groups = build_optimizer(loaded.model, training.optimizer).param_groups
    weights = [weight for group in groups for weight in group["params"]]
    entries = [  # each tensor with the weight that it belongs to
        (value, weights[number])
        for number, values in state["optimizer"].items()
        for value in values.values()
        if isinstance(value, Tensor) and value.dim() > 0
    ]
    if state.get("raw_weights") is not None:
        entries += zip(state["raw_weights"], loaded.model.parameters(), strict=True)
    for random in state["random"]["cpu"]:
        torch.Generator().set_state(random)  # raises if it is no random state
    # Adafactor's moments are rows and columns, not the shape of the weight.
    any_shape = training.optimizer.optim == "adafactor"
    return all(isinstance(number, int | float | None) for number in numbers) and all(
        value.dtype == weight.dtype and (value.shape == weight.shape or any_shape)
        for value, weight in entries
    )


def same_folder(run: RunConfig) -> bool:
    """Return whether the run writes to the folder that it continues."""
    if run.train_from is None:
        return False
    source = Path(run.train_from).resolve()
    return Path(run.save_model).resolve() in (source, source.parent)


def _check_folder(run: RunConfig, resumed: Resumed | None) -> None:
    """Refuse to mix a run with the checkpoints of another run, or with its own later ones.

    Raises:
        CheckpointError: says what the folder holds and how to go on.
    """
    folder = Path(run.save_model)
    steps = checkpoint_steps(folder)
    if (folder / "config.yaml").is_file():
        raise CheckpointError(
            f"{folder}: is a model itself, and not a run; choose another save_model"
        )
    if same_folder(run) and resumed is not None:
        if resumed.state is None:
            raise CheckpointError(
                f"{folder}: holds what -train_from names: -reset_optim all begins another run, so "
                f"choose another save_model"
            )
        if Path(str(run.train_from)).resolve() == folder.resolve():
            return  # later checkpoints are damaged, and will be overwritten
        steps = [step for step in steps if step > resumed.step]
        if steps and not run.overwrite:
            raise CheckpointError(
                f"{folder}: holds checkpoints of later steps, up to {steps[-1]}; delete them with "
                f"-overwrite on the command line, or choose another save_model"
            )
    elif steps and not run.overwrite:
        raise CheckpointError(
            f"{folder}: already holds checkpoints; continue with -train_from {folder}, "
            f"start anew with -overwrite on the command line, or choose another save_model"
        )
