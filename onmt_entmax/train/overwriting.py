"""The checkpoints that a run finds in its folder: it refuses to add to them, or deletes them."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from onmt_entmax.checkpoint import CheckpointError, best_step, checkpoint_steps
from onmt_entmax.config import RunConfig
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.data.training import TrainingData
from onmt_entmax.files import write_files
from onmt_entmax.train.kept_checkpoints import remove_checkpoint
from onmt_entmax.train.resumed import Resumed


def same_folder(run: RunConfig) -> bool:
    """Return whether the run writes to the folder that it continues.

    That is the run folder that `train_from` names, or the one that holds the checkpoint.
    """
    if run.train_from is None:
        return False
    source, folder = Path(run.train_from).resolve(), Path(run.save_model).resolve()
    checkpoints = [folder / f"step_{step}" for step in checkpoint_steps(folder)]
    return source in (folder, *checkpoints)


def check_folder(run: RunConfig, resumed: Resumed | None) -> None:
    """Refuse to mix a run with the checkpoints of another run, or with its own later ones.

    Args:
        run: names the folder, and says whether the user lets checkpoints be deleted.
        resumed: the checkpoint to continue from; None for a new run.

    Raises:
        CheckpointError: says what the folder holds and how to go on.
    """
    folder = Path(run.save_model)
    if (folder / "config.yaml").is_file():
        raise CheckpointError(
            f"{folder}: is a model itself, and not a run; choose another save_model"
        )
    if resumed is not None and same_folder(run):
        _check_continued_folder(folder, run, resumed)
    elif checkpoint_steps(folder) and not run.overwrite:
        raise CheckpointError(
            f"{folder}: already holds checkpoints; continue with -train_from {folder}, "
            f"start anew with -overwrite on the command line, or choose another save_model"
        )


def _check_continued_folder(folder: Path, run: RunConfig, resumed: Resumed) -> None:
    """Check a folder one of whose checkpoints is continued there; see `check_folder`."""
    if resumed.state is None:
        raise CheckpointError(
            f"{folder}: holds what -train_from names: -reset_optim all begins another run, so "
            f"choose another save_model"
        )
    if Path(str(run.train_from)).resolve() == folder.resolve():
        return  # the newest whole one is continued; damaged ones after it will be overwritten
    later = [step for step in checkpoint_steps(folder) if step > resumed.step]
    if later and not run.overwrite:
        raise CheckpointError(
            f"{folder}: holds checkpoints of later steps, up to {later[-1]}; delete them with "
            f"-overwrite on the command line, or choose another save_model"
        )


def clean_folder(
    run: RunConfig, data: TrainingData, resumed: Resumed | None, tell: Callable[[str], None]
) -> None:
    """Write the new vocabulary files and delete what the run replaces.

    Nothing is written or deleted before all inputs, the first batch included, have been read: a
    run that cannot start leaves the earlier one as it was.

    Args:
        run: names the folder.
        data: has the texts of new vocabulary files.
        resumed: the checkpoint to continue from; None for a new run.
        tell: receives a line for everything written or deleted.
    """
    folder = Path(run.save_model)
    first = resumed.step if resumed is not None and same_folder(run) else 0
    steps = checkpoint_steps(folder) if run.overwrite else []
    replaced = [step for step in steps if step > first]
    if replaced or data.new_files:
        _read_first_batch(data)
    write_files(data.new_files)
    for path in data.new_files:
        tell(f"note: {path}: was not there; written, with the tokens counted in the data")
    if replaced:
        names = ", ".join(f"step_{step}" for step in replaced)
        tell(f"note: -overwrite: deletes from {folder}: {names}")
    if run.overwrite:
        _delete_after(first, folder)


def _read_first_batch(data: TrainingData) -> None:
    """Read the first batch of the data, so that data without any fails here."""
    with closing(iter(TrainingBatches(data))) as stream:
        next(stream)


def _delete_after(step: int, folder: Path) -> None:
    """Delete what an earlier run wrote after `step`; `Log` cuts the measurements."""
    # From the start, a damaged best.json goes too.
    if step == 0 or (best_step(folder) or 0) > step:
        (folder / "best.json").unlink(missing_ok=True)
    for later in checkpoint_steps(folder):
        if later > step:
            remove_checkpoint(folder, later)
