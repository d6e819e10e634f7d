"""The folder that a run writes to: one run at a time, and no checkpoints of other runs."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from onmt_entmax.checkpoint import checkpoint_steps, clear, remove_leftovers
from onmt_entmax.config import RunConfig
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.data.training import TrainingData
from onmt_entmax.files import FileError, locked, write_files
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.resuming import Resumed, same_folder


@contextmanager
def alone(folder: Path, processes: Processes) -> Iterator[Callable[[], None] | None]:
    """Lock the run folder in the first process; two runs at once would delete each other's files.

    Reading needs no lock: a checkpoint gets its name when it is complete.

    Yields:
        In the first process, a function that raises FileError if the folder was deleted or
        replaced meanwhile; None in the others.

    Raises:
        FileError: another run holds the lock.
        SystemExit: the first process was refused, and says so; this is another process.
    """
    with ExitStack() as stack:
        refusal, unchanged = None, None
        if processes.writes:
            try:
                unchanged = stack.enter_context(locked(folder))
                remove_leftovers(folder)
            except FileError as error:
                refusal = error
        if processes.from_first(refusal is not None):
            raise refusal or SystemExit(2)
        yield unchanged


def clean_folder(
    run: RunConfig, data: TrainingData, resumed: Resumed | None, tell: Callable[[str], None]
) -> None:
    """Write the new vocabulary files and delete what the run replaces.

    Nothing is written or deleted before all inputs, the first batch included, have been read: a
    run that cannot start leaves the earlier one as it was. `tell` receives a line for everything
    written or deleted.
    """
    folder = Path(run.save_model)
    first = resumed.step if resumed and same_folder(run) else 0
    steps = checkpoint_steps(folder) if run.overwrite else []
    replaced = [step for step in steps if step > first]
    if replaced or data.new_files:
        with closing(iter(TrainingBatches(data))) as stream:
            next(stream)
    write_files(data.new_files)
    for path in data.new_files:
        tell(f"note: {path}: was not there; written, with the tokens counted in the data")
    if replaced:
        names = ", ".join(f"step_{step}" for step in replaced)
        tell(f"note: -overwrite: deletes from {folder}: {names}")
    if run.overwrite:
        clear(folder, first)
