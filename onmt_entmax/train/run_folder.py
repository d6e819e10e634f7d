"""The folder of a run while it trains: its checkpoints, and one run at a time.

A reader finds a checkpoint whole or not at all: it gets its name when it is complete.
"""

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import best_step, checkpoint_steps, save
from onmt_entmax.config import ModelConfig, RunConfig
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.files import FileError, json_line, locked, remove, write_files, write_text
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.resuming import Resumed, same_folder

# Temporary names that a killed run may leave: see `write_folder` and `Log`.
_LEFTOVER = re.compile(
    r"\.step_\d+(\.[0-9a-f]+\.tmp|\.old)"
    r"|\.(best\.json|metrics\.jsonl)\.[0-9a-f]+\.tmp"
)


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, and what each of its checkpoints records."""

    path: Path
    config: ModelConfig
    vocabularies: Vocabularies
    options: Mapping[str, Any]
    keep: int = -1  # newest checkpoints to keep besides the best; negative: all
    others: Mapping[str, bytes] | None = None  # further files by name
    unchanged: Callable[[], None] | None = None  # raises FileError if the folder was replaced

    def save(self, step: int, model: SparseNMTModel, state: Mapping[str, Any]) -> None:
        """Write checkpoint `step` and delete old ones.

        Raises:
            FileError: it cannot be written, or the folder was deleted or replaced.
        """
        self.check()
        folder = self.path / f"step_{step}"
        save(folder, model, self.config, self.vocabularies, self.options, state, self.others)
        prune(self.path, self.keep, step)

    def check(self) -> None:
        """Check that this is still the folder in which the run began.

        Raises:
            FileError: it was deleted or replaced.
        """
        if self.unchanged is not None:
            self.unchanged()


def remember_best(run: Path, step: int, metric: str, value: float) -> None:
    """Write `best.json`: checkpoint `step` is the best of the run."""
    content = {"step": step, "metric": metric, "value": value}
    write_text(run / "best.json", json_line(content))


def remove_leftovers(run: Path) -> None:
    """Delete the temporary files of a killed run; restore a checkpoint that it was replacing."""
    for path in run.iterdir() if run.is_dir() else ():
        if not _LEFTOVER.fullmatch(path.name):
            continue
        checkpoint = path.with_name(path.stem[1:])  # of .step_5.old
        if path.suffix == ".old" and not checkpoint.exists():
            path.rename(checkpoint)
        else:
            remove(path)


def prune(run: Path, keep: int, newest: int) -> None:
    """Delete old checkpoints of a run.

    Args:
        run: the run folder.
        keep: number of newest checkpoints to keep, besides the best one; negative keeps all.
        newest: current step of the run. Checkpoints with larger numbers are damaged ones that a
            resumed run skipped; they are ignored.
    """
    if keep < 0:
        return
    steps = [step for step in checkpoint_steps(run) if step <= newest]
    kept = {*steps[max(len(steps) - keep, 0) :], best_step(run)}
    for step in steps:
        if step not in kept:
            remove_checkpoint(run, step)


def remove_checkpoint(run: Path, step: int) -> None:
    """Delete a checkpoint, of a link only the link; readers find it whole or not at all."""
    hidden = run / f".step_{step}.{secrets.token_hex(8)}.tmp"
    (run / f"step_{step}").rename(hidden)
    remove(hidden)


def clear(folder: Path, step: int) -> None:
    """Delete what an earlier run wrote after `step`; `Log` cuts the measurements."""
    # From the start, a damaged best.json goes too.
    if step == 0 or (best_step(folder) or 0) > step:
        (folder / "best.json").unlink(missing_ok=True)
    for later in checkpoint_steps(folder):
        if later > step:
            remove_checkpoint(folder, later)


@contextmanager
def alone(folder: Path, processes: Processes) -> Iterator[Callable[[], None] | None]:
    """Lock the run folder in the first process; two runs at once would delete each other's files.

    Reading needs no lock; see the docstring of the module.

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
