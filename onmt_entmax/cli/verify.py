"""Check that the files of model folders and run folders are as they were written.

    onmt-entmax verify run/mine/model

Every model folder lists the checksums of its files in SHA256SUMS, which `sha256sum -c` also reads.
In a run folder, all checkpoints and best.json are checked. Each file that is wrong, missing or not
listed is named.

The exit status is 1 if there is such a file. If one of the folders has no model, the others are
checked all the same, and the status is 2.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.checkpoint import CheckpointError, checkpoint_steps, find_model, read_best
from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.errors import UserError, counted, printable
from onmt_entmax.files.checksums import differences, is_listed

_DAMAGED = 1


def main(arguments: Sequence[str]) -> int:
    """Check the folders; return the exit status.

    Raises:
        CheckpointError: some folders have no model; the others were checked all the same.
    """
    parser = argument_parser(__doc__)
    parser.add_argument(
        "folders", type=Path, nargs="+", metavar="FOLDER", help="run or model folder"
    )
    statuses: list[int] = []
    missing: list[str] = []
    for path in parser.parse_args(arguments).folders:
        try:
            statuses.append(_check(path))
        except CheckpointError as error:
            missing.append(str(error))
    if missing:
        raise CheckpointError("; ".join(missing))
    return max(statuses)


def _check(path: Path) -> int:
    """Check one folder; print what is wrong with it, or that its files are as written.

    Returns:
        0 if its files are as written, else 1.

    Raises:
        CheckpointError: there is no model in it.
    """
    # Only a run folder has steps; a model folder may hold folders that are named like checkpoints.
    steps = [] if is_listed(path) else checkpoint_steps(path)
    problems = _problems_of_run(path, steps) if steps else _problems_of_model(find_model(path))
    for problem in problems:
        print(printable(problem), file=sys.stderr)
    if problems:
        return _DAMAGED
    checked = counted(len(steps), "checkpoint") if steps else "all files"
    print(f"{path}: {checked} as written")
    return 0


def _problems_of_run(run: Path, steps: Sequence[int]) -> list[str]:
    """Return what is wrong with the checkpoints and best.json of a run.

    Args:
        run: the run folder.
        steps: steps of its checkpoints.
    """
    problems = [problem for step in steps for problem in _problems_of_model(run / f"step_{step}")]
    try:
        best = read_best(run)
    except UserError as error:
        return [*problems, str(error)]
    if best is not None and best.step not in steps:
        problems.append(f"{run / 'best.json'}: step {best.step} has no checkpoint")
    return problems


def _problems_of_model(folder: Path) -> list[str]:
    """Return what is wrong with the files of a model folder."""
    try:
        return differences(folder)
    except UserError as error:
        return [str(error)]
