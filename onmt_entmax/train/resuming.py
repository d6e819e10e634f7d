"""Resuming: the checkpoint that a run continues from.

`resume` loads it, checks that it fits the configuration (`matching.py`) and the folder that the run
writes to (`overwriting.py`), and forgets what does not count in this run. The trainer restores its
training state, whose entries `saved_state.py` describes.
"""

from collections.abc import Callable
from pathlib import Path

from onmt_entmax.checkpoint import (
    STATE,
    CheckpointError,
    checkpoint_steps,
    find_model,
    load,
    read_training_state,
)
from onmt_entmax.config import RunConfig, TrainingConfig, TrainingSetup
from onmt_entmax.initial_weights import freeze
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.train.clock import seconds_at_end
from onmt_entmax.train.matching import OtherRunError, check_same_run, measures_the_same
from onmt_entmax.train.overwriting import check_folder, same_folder
from onmt_entmax.train.resumed import Resumed
from onmt_entmax.train.saved_state import SavedRun, SavedState
from onmt_entmax.train.selection import forget_best, forget_validations
from onmt_entmax.train.state_checks import is_state_of, largest_state


def resume(setup: TrainingSetup, tell: Callable[[str], None]) -> Resumed | None:
    """Load the checkpoint to continue from, or return None for a new run.

    Args:
        setup: names the checkpoint and the folder to write to, and has the network and the
            optimiser, which must be the checkpoint's.
        tell: receives a warning for each damaged checkpoint that is skipped, and if the best one is
            gone.

    Raises:
        CheckpointError: there is no checkpoint, it has another model or optimiser, all of them are
            damaged, it has reached a limit already and the run folder is another, or the run
            folder holds checkpoints that this run does not continue.
    """
    run = setup.run
    if run.train_from is None:
        check_folder(run, resumed=None)
        return None
    folder, resumed = _newest_readable(Path(run.train_from), setup, tell)
    dropout, attention_dropout = setup.model.dropout, setup.model.attention_dropout
    resumed.loaded.model.update_dropout(dropout, attention_dropout)
    check_folder(run, resumed)
    if resumed.state is not None:
        same_measure = measures_the_same(resumed.loaded.options, setup.record)
        _reset_best(resumed.state["run"], run, same_measure=same_measure, tell=tell)
    limit = _limit_reached(resumed, setup.training)
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
    named: Path, setup: TrainingSetup, tell: Callable[[str], None]
) -> tuple[Path, Resumed]:
    """Return the checkpoint to continue from: in a run folder, the newest that can be read.

    Args:
        named: the checkpoint or the run folder.
        setup: the configuration that it must fit.
        tell: receives a warning for each damaged checkpoint that is skipped.

    Returns:
        Its folder and content.

    Raises:
        CheckpointError: there is none, it is of another run, or all are damaged.
    """
    steps = checkpoint_steps(named)
    newest_first = [named / f"step_{step}" for step in reversed(steps)] or [find_model(named)]
    for folder in newest_first[:-1]:
        try:
            return folder, _load_matching(folder, setup)
        except OtherRunError:  # older checkpoints are of that run, too
            raise
        except CheckpointError as error:
            tell(f"warning: {error}; trying the checkpoint before")
    oldest = newest_first[-1]
    return oldest, _load_matching(oldest, setup)


def _reset_best(
    saved: SavedRun, run: RunConfig, same_measure: bool, tell: Callable[[str], None]
) -> None:
    """Forget the best checkpoint so far if it does not count in this run.

    Args:
        saved: the numbers of the run that is continued; changed in place.
        run: names the folder to write to.
        same_measure: whether validations measure the same as before.
        tell: receives a warning if the best checkpoint is gone.
    """
    if not same_measure:
        saved["previous_loss"] = None
    if not same_measure or not same_folder(run):
        # Its value is of another measure, or its checkpoint in another folder.
        forget_validations(saved)
        return
    best = saved["best_step"]
    if best > 0 and best not in checkpoint_steps(Path(run.save_model)):
        tell(
            f"warning: {run.save_model}: step_{best}, the best checkpoint so far, is gone; the "
            "best of those to come takes its place"
        )
        forget_best(saved)


def _limit_reached(resumed: Resumed, training: TrainingConfig) -> str | None:
    """Return which limit a checkpoint has reached already, for a message; or None.

    The trainer ends by the same test, `Trainer._outcome`.
    """
    if resumed.state is None:
        return None
    saved, epoch = resumed.state["run"], resumed.state["position"]["epoch"]
    limit = training.reached(saved["step"], epoch, seconds_at_end(saved), saved["waited"])
    if limit is None:
        return None
    return f"step {saved['step']:,}, {limit} {getattr(training, limit):,}"


def _load_matching(folder: Path, setup: TrainingSetup) -> Resumed:
    """Load a checkpoint and check that it fits the configuration.

    Raises:
        OtherRunError: names the first option that differs.
        CheckpointError: a file is damaged.
    """
    weights_only = setup.run.reset_optim == "all"
    loaded = load(folder)
    check_same_run(folder, loaded, setup, weights_only)
    freeze(loaded.model, setup.model)  # decides which weights the optimiser has
    if weights_only:
        return Resumed(loaded, state=None)
    return Resumed(loaded, _read_state(folder, loaded.model, setup.training))


def _read_state(folder: Path, model: SparseNMTModel, training: TrainingConfig) -> SavedState:
    """Return the training state of a checkpoint, which fits its model.

    Raises:
        CheckpointError: it is damaged.
    """
    state = read_training_state(folder, largest_state(model))
    if not is_state_of(state, model, training.optimizer):
        raise CheckpointError(f"{folder / STATE}: damaged: not a state of this model's training")
    return state
