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
from onmt_entmax.strings.task import recorded_task
from onmt_entmax.train.optimiser import build_optimizer

# Options that the state of an optimiser depends on, besides the trained weights.
_OPTIMIZER = ("optim", "adam_beta1", "adam_beta2")
# Options of the model that may change when a run is resumed: no weight depends on them.
_FREE = "param_init param_init_glorot alpha_init_mean alpha_init_std dropout attention_dropout"


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
    given = Path(run.train_from)
    # Of a run folder, the newest checkpoint that can be read.
    steps = checkpoint_steps(given)
    candidates = [given / f"step_{step}" for step in reversed(steps)] or [find_model(given)]
    for folder in candidates:
        try:
            resumed = _read(folder, model, training, record, run.reset_optim == "all")
            break
        except CheckpointError as error:
            if isinstance(error, OtherRunError) or folder == candidates[-1]:
                raise
            tell(f"warning: {error}; trying the checkpoint before")
    loaded, state = resumed.loaded, resumed.state
    freeze(loaded.model, model)
    loaded.model.update_dropout(model.dropout, model.attention_dropout)
    other_measure = _measured(loaded.options) != _measured(record)
    if state is not None and (other_measure or not same_folder(run)):
        # The best value so far is of another measure, or its checkpoint of another folder.
        state["run"] |= {"best": None, "best_step": -1, "best_planned": None, "waited": 0}
        state["run"] |= {"previous_loss": None} if other_measure else {}
    elif state is not None:
        best, there = state["run"]["best_step"], checkpoint_steps(Path(run.save_model))
        if best > 0 and best not in there:
            tell(
                f"warning: {run.save_model}: step_{best}, the best checkpoint so far, is gone; the "
                "best of those to come takes its place"
            )
            state["run"] |= {"best": None, "best_step": -1}
    _check_folder(run, resumed)
    limit = None
    if state is not None:
        at, epoch = state["run"], state["position"]["epoch"]
        ending = sum(at.get(name) or 0.0 for name in ("validating", "saving"))
        limit = training.reached(at["step"], epoch, at["seconds"] + ending, at["waited"])
    finished = limit and f"step {at['step']:,}, {limit} {getattr(training, limit):,}"
    if finished and not same_folder(run):
        raise CheckpointError(
            f"{folder}: nothing is left to train: {finished}; set a higher limit, or take the "
            "weights alone with -reset_optim all, which counts from 0"
        )
    tell(f"continuing from {folder}")
    if finished:
        tell(f"note: nothing is left to train: {finished}")
    return resumed


def _measured(options: Mapping[str, Any]) -> list[Any]:
    """Return the development set, and how models are compared on it."""
    names = [field.name for field in fields(ValidationConfig) if field.name != "valid_batch_size"]
    return [(options.get("data") or {}).get("valid"), *map(options.get, names)]


def _read(
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
    names = [field.name for field in fields(model)]
    pairs = {name: (getattr(loaded.config, name), getattr(model, name)) for name in names}
    # The tokens that the network reads and writes; of copying, the vocabulary decides the rest.
    before, now = loaded.task, recorded_task({**record, "task": None}, languages=False)
    pairs |= {
        "target_order": (before.order, now.order),
        "copying (copy_frequency)": (before.copies, now.copies),
    }
    hint = ""
    if not weights_only:
        hint = "; -reset_optim all takes the weights alone"
        pairs |= {
            name: (loaded.options[name], getattr(training.optimizer, name))
            for name in _OPTIMIZER
            if name in loaded.options
        }
    for name, (saved, configured) in pairs.items():
        frozen = name.startswith("freeze_")
        if saved == configured or name in _FREE.split() or (frozen and weights_only):
            continue
        raise OtherRunError(
            f"{folder}: cannot continue: it was trained with {name} {saved!r}, the configuration "
            f"now says {configured!r}{hint if frozen or name in _OPTIMIZER else ''}"
        )
    if weights_only:
        return Resumed(loaded, None)
    # Weights, averages and two moments in double precision, random states of many processes.
    at_most = 64 * sum(weight.numel() for weight in loaded.model.parameters()) + 2**26
    state = read_training_state(folder, at_most)
    freeze(loaded.model, model)  # decides which weights the optimiser has
    try:
        fits = _fits(state, loaded, training)
    except Exception:  # whatever a state that was changed by hand may raise
        fits = False
    if not fits:
        raise CheckpointError(f"{folder / STATE}: damaged: not a state of this model's training")
    return Resumed(loaded, state)


def _fits(state: Mapping[str, Any], loaded: LoadedModel, training: TrainingConfig) -> bool:
    """Whether a training state can be restored: tensors of wrong shapes would crash torch."""
    numbers = [*state["run"].values(), *state["position"].values()]
    groups = build_optimizer(loaded.model, training.optimizer).param_groups
    weights = [weight for group in groups for weight in group["params"]]
    entries = [
        (value, weights[number])
        for number, values in state["optimizer"].items()
        for value in values.values()
        if isinstance(value, Tensor) and value.dim() > 0
    ]
    factored = training.optimizer.optim == "adafactor"
    if state.get("raw_weights") is not None:
        entries += zip(state["raw_weights"], loaded.model.parameters(), strict=True)
    for random in state["random"]["cpu"]:
        torch.Generator().set_state(random)
    return all(isinstance(number, int | float | None) for number in numbers) and all(
        value.dtype == weight.dtype and (value.shape == weight.shape or factored)
        for value, weight in entries
    )


def same_folder(run: RunConfig) -> bool:
    """Whether the run writes to the folder that it continues."""
    folder = Path(run.save_model).resolve()
    given = Path(run.train_from or "").resolve()
    return run.train_from is not None and folder in (given, given.parent)


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
