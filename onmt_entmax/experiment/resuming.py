"""Where a training run begins: at nothing, or at a checkpoint that fits what is asked for now."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import (
    CheckpointError,
    LoadedModel,
    best_step,
    checkpoint_steps,
    find_model,
    load,
    read_training_state,
)
from onmt_entmax.model import freeze
from onmt_entmax.options.train import TrainingSetup

# What the state of an optimiser depends on, besides the weights that are trained.
_OPTIMIZER = ("optim", "adam_beta1", "adam_beta2")
# What may change from one part of a run to the next: it is not in the weights.
_FREE = ("param_init", "param_init_glorot", "dropout", "attention_dropout")


@dataclass(frozen=True)
class Resumed:
    """A checkpoint to continue from."""

    loaded: LoadedModel
    state: dict[str, Any] | None  # None where only the weights are taken over

    @property
    def step(self) -> int:
        """Updates that are done."""
        return 0 if self.state is None else int(self.state["run"]["step"])


def resume(setup: TrainingSetup, say: Callable[[str], None]) -> Resumed | None:
    """The checkpoint to continue from, checked against what is asked for now; None for none.

    Raises:
        CheckpointError: there is none, it is of another model or optimiser, none of a run is
            whole, or the folder to write to holds checkpoints that are not continued.
    """
    if setup.run.train_from is None:
        _check_folder(setup, None)
        return None
    given = Path(setup.run.train_from)
    steps = checkpoint_steps(given)
    # Of a run folder, the newest checkpoint that is whole.
    candidates = [given / f"step_{step}" for step in reversed(steps)] or [find_model(given)]
    fresh = setup.record["reset_optim"] == "all"
    for number, folder in enumerate(candidates, 1):
        try:
            loaded = load(folder)
            state = None if fresh else read_training_state(folder)
        except CheckpointError as error:
            if number == len(candidates):
                raise
            say(f"warning: {error}; trying the checkpoint before")
            continue
        _check_same_model(setup, loaded, folder, fresh)
        freeze(loaded.model, setup.model)
        loaded.model.update_dropout(setup.model.dropout, setup.model.attention_dropout)
        selection = setup.training.selection
        other_measure = loaded.options.get("selection", selection) != selection
        if state is not None and (other_measure or not continues(setup)):
            # The best so far was the best by another measure, or stays in the other folder.
            state["run"] |= {"best": None, "best_step": -1, "best_planned": None, "waited": 0}
        resumed = Resumed(loaded, state)
        _check_folder(setup, resumed)
        say(f"continuing from {folder}")
        return resumed
    raise AssertionError("the last candidate either loads or raises")


def _check_same_model(setup: TrainingSetup, loaded: LoadedModel, folder: Path, fresh: bool) -> None:
    """Refuse a checkpoint of another model, or one whose optimiser's state would not fit."""
    for field in fields(setup.model):
        asked, made = getattr(setup.model, field.name), getattr(loaded.config, field.name)
        frozen = field.name.startswith("freeze_")
        if asked == made or field.name in _FREE or (frozen and fresh):
            continue
        hint = "; -reset_optim all takes the weights alone" if frozen else ""
        raise CheckpointError(
            f"{folder}: cannot continue: the model was made with {field.name} {made!r}, "
            f"the configuration now says {asked!r}{hint}"
        )
    for name in () if fresh else _OPTIMIZER:
        asked, made = setup.record[name], loaded.options.get(name)
        if made is not None and asked != made:
            raise CheckpointError(
                f"{folder}: cannot continue: it was trained with {name} {made!r}, the "
                f"configuration now says {asked!r}; -reset_optim all takes the weights alone"
            )


def continues(setup: TrainingSetup) -> bool:
    """Whether the run goes on in the folder that it continues."""
    run = Path(setup.run.save_model).resolve()
    given = Path(setup.run.train_from or "").resolve()
    return setup.run.train_from is not None and run in (given, given.parent)


def _check_folder(setup: TrainingSetup, resumed: Resumed | None) -> None:
    """Refuse to mix a run with what another one, or a later part of it, has left in its folder."""
    run = Path(setup.run.save_model)
    steps = checkpoint_steps(run)
    if (run / "config.yaml").is_file():
        raise CheckpointError(f"{run}: is a model itself, and not a run; choose another save_model")
    if continues(setup) and resumed is not None:
        if resumed.state is None:
            raise CheckpointError(
                f"{run}: holds what -train_from names: -reset_optim all begins another run, so "
                f"choose another save_model"
            )
        if Path(str(setup.run.train_from)).resolve() == run.resolve():
            return  # what is later is damaged, and will be written anew
        steps = [step for step in steps if step > resumed.step]
        if steps and not setup.run.overwrite:
            raise CheckpointError(
                f"{run}: holds checkpoints of later steps, up to {steps[-1]}; delete them with "
                f"-overwrite, or choose another save_model"
            )
    elif steps and not setup.run.overwrite:
        raise CheckpointError(
            f"{run}: already holds checkpoints; continue with -train_from {run}, "
            f"start anew with -overwrite, or choose another save_model"
        )


def clear(run: Path, step: int) -> None:
    """Delete what an earlier run left of the time after `step`, and nothing else.

    What it measured up to then stays, see `onmt_entmax.records`.
    """
    best = best_step(run)
    if best is not None and best > step:
        (run / "best.json").unlink()
    for later in checkpoint_steps(run):
        if later > step:
            shutil.rmtree(run / f"step_{later}")
    if step == 0:
        for path in [run / "metrics.jsonl", *run.glob("nonfinite_step_*.json")]:
            path.unlink(missing_ok=True)
