"""One run at a time in a run folder, which starts without the leftovers of a killed one."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from onmt_entmax.files import FileError, locked, naming, remove
from onmt_entmax.files.checksums import check_inside
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.run_folder import check_nothing

# Names that a killed run may leave; see `write_folder`, `write_text` and `Log`.
_UNFINISHED = re.compile(r"\.(step_\d+|best\.json|metrics\.jsonl)\.[0-9a-f]+\.tmp")
_REPLACED = re.compile(r"\.(step_\d+)\.old")
# Files of a run folder that every run writes.
_WRITTEN = ("best.json", "metrics.jsonl")


@contextmanager
def alone(folder: Path, processes: Processes) -> Iterator[Callable[[], None]]:
    """Lock a run folder while a run uses it; two runs would delete each other's files.

    The first process takes the lock. Readers need none; see `run_folder.py`.

    Args:
        folder: the run folder.
        processes: the processes of the run. The first one tells the others whether it has the lock,
            so that all enter the block, or none.

    Yields:
        A function that raises FileError if the folder was deleted or replaced meanwhile; it checks
        nothing in a process that does not write.

    Raises:
        FileError: another run holds the lock, a file of the folder leads elsewhere, or a checkpoint
            cannot be restored.
        SystemExit: in the other processes, if the first one raises FileError.
    """
    check_unchanged: Callable[[], None] = check_nothing
    refusal: FileError | None = None
    with ExitStack() as stack:
        if processes.writes:
            try:
                check_unchanged = stack.enter_context(locked(folder))
                _refuse_other_files(folder)
                remove_leftovers(folder)
            except FileError as error:
                refusal = error
        is_refused = processes.from_first(refusal is not None)
        if refusal is not None:
            raise refusal
        if is_refused:
            raise SystemExit(2)  # the first process prints the reason
        yield check_unchanged


def _refuse_other_files(run: Path) -> None:
    """Refuse a run folder in which something else stands in the place of a file that runs write.

    A stranger may have made a link to a private file, which the run would overwrite, or a pipe, for
    whose reader it would wait for ever.

    Raises:
        FileError: names the file.
    """
    for name in _WRITTEN:
        check_inside(run, name)
        path = run / name
        if path.exists() and not path.is_file():
            raise FileError(f"{path}: is a folder, a pipe or a device, not a file; delete it")


def remove_leftovers(run: Path) -> None:
    """Delete the temporary files of a killed run; restore a checkpoint that it was replacing.

    Args:
        run: a run folder, which exists.

    Raises:
        FileError: a checkpoint cannot be restored.
    """
    for path in run.iterdir():
        replaced = _REPLACED.fullmatch(path.name)
        checkpoint = run / replaced[1] if replaced else None
        if checkpoint is not None and not checkpoint.exists():
            with naming(checkpoint, "restored"):
                path.rename(checkpoint)
        elif replaced or _UNFINISHED.fullmatch(path.name):
            remove(path)
