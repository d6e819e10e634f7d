"""The folder of a run while it trains: its checkpoints, and one run at a time.

A reader finds a checkpoint whole or not at all: it gets its name when it is complete, and loses it
before it is deleted. A killed run may leave temporary names; the next one removes them.

`RunFolder` writes the checkpoints of a training. What needs no training, such as deleting
checkpoints and locking, are functions of the folder's path.
"""

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import best_step, checkpoint_steps, save
from onmt_entmax.config import ModelConfig
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.files import FileError, json_line, locked, naming, remove, write_text
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.parallel.processes import Processes

# Temporary names that a killed run may leave: see `write_folder` and `Log`.
_LEFTOVER = re.compile(
    r"\.step_\d+(\.[0-9a-f]+\.tmp|\.old)"
    r"|\.(best\.json|metrics\.jsonl)\.[0-9a-f]+\.tmp"
)


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, and what each of its checkpoints records.

    Attributes:
        path: of the folder.
        config: the network.
        vocabularies: of source and target.
        options: all options of the run, by name.
        keep: number of newest checkpoints to keep, besides the best one; negative keeps all, 0 is
            refused.
        others: content of further files of each checkpoint, by name.
        unchanged: raises FileError if the folder was deleted or replaced since the run began, see
            :func:`alone`; None checks nothing.
    """

    path: Path
    config: ModelConfig
    vocabularies: Vocabularies
    options: Mapping[str, Any]
    keep: int = -1
    others: Mapping[str, bytes] | None = None
    unchanged: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        if self.keep == 0:
            raise ValueError("keep=0 deletes each new checkpoint: use 1 or more, or -1 to keep all")

    def save(self, step: int, model: SparseNMTModel, state: Mapping[str, Any]) -> None:
        """Write checkpoint `step` and delete old ones.

        Args:
            step: number of updates before it.
            model: has the weights to save.
            state: of the training, see `state.py`.

        Raises:
            FileError: it cannot be written, an old one cannot be deleted, or the folder was
                deleted or replaced.
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
    """Write `best.json`, which names the best checkpoint of a run.

    Args:
        run: the run folder.
        step: number of the checkpoint.
        metric: the measure that chose it, such as `loss`.
        value: its value.

    Raises:
        FileError: it cannot be written.
    """
    content = {"step": step, "metric": metric, "value": value}
    write_text(run / "best.json", json_line(content))


def remove_leftovers(run: Path) -> None:
    """Delete the temporary files of a killed run; restore a checkpoint that it was replacing.

    Raises:
        FileError: a checkpoint cannot be restored.
    """
    for path in run.iterdir() if run.is_dir() else ():
        if not _LEFTOVER.fullmatch(path.name):
            continue
        if path.suffix == ".old":
            checkpoint = path.with_name(path.stem[1:])  # `step_5` of `.step_5.old`
            if not checkpoint.exists():
                with naming(checkpoint, "restored"):
                    path.rename(checkpoint)
                continue
        remove(path)


def prune(run: Path, keep: int, newest: int) -> None:
    """Delete old checkpoints of a run.

    Args:
        run: the run folder.
        keep: number of newest checkpoints to keep, besides the best one; negative keeps all.
        newest: current step of the run. Checkpoints with larger numbers are damaged ones that a
            resumed run skipped; they are ignored.

    Raises:
        FileError: one cannot be deleted.
    """
    if keep < 0:
        return
    steps = [step for step in checkpoint_steps(run) if step <= newest]
    old = steps[: max(len(steps) - keep, 0)]
    best = best_step(run)
    for step in old:
        if step != best:
            remove_checkpoint(run, step)


def remove_checkpoint(run: Path, step: int) -> None:
    """Delete a checkpoint; if it is a link, delete the link only.

    Args:
        run: the run folder.
        step: number of the checkpoint.

    Raises:
        FileError: it cannot be deleted.
    """
    # Renamed first, so that readers never find a part of it.
    hidden = run / f".step_{step}.{secrets.token_hex(8)}.tmp"
    checkpoint = run / f"step_{step}"
    with naming(checkpoint, "deleted"):
        checkpoint.rename(hidden)
    remove(hidden)


@contextmanager
def alone(folder: Path, processes: Processes) -> Iterator[Callable[[], None] | None]:
    """Lock a run folder while a run uses it; two at once would delete each other's files.

    The first process takes the lock. Readers need none; see the docstring of the module.

    Args:
        folder: the run folder.
        processes: of the run. The first one tells the others whether it has the lock, so that all
            enter the block, or none.

    Yields:
        In the first process, a function that raises FileError if the folder was deleted or
        replaced meanwhile; None in the others.

    Raises:
        FileError: another run holds the lock, or a checkpoint cannot be restored.
        SystemExit: in the other processes, if the first one raises FileError.
    """
    with ExitStack() as stack:
        refusal: FileError | None = None
        unchanged: Callable[[], None] | None = None
        if processes.writes:
            try:
                unchanged = stack.enter_context(locked(folder))
                remove_leftovers(folder)
            except FileError as error:
                refusal = error
        if processes.from_first(refusal is not None):
            raise refusal or SystemExit(2)
        yield unchanged
