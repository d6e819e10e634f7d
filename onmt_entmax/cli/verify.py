"""Check that the files of model folders and run folders are as they were written.

    onmt-entmax verify run/mine/model

Every model folder lists the checksums of its files in SHA256SUMS, which `sha256sum -c` reads too.
Of a run folder, all checkpoints and best.json are checked. Each file that is wrong, missing or not
listed is named; the exit status is then 1.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from onmt_entmax.checkpoint import checkpoint_steps, find_model, read_best
from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.errors import UserError, counted, printable
from onmt_entmax.files.checksums import differences, is_listed


def main(arguments: Sequence[str]) -> int:
    """Check the folders; return the exit status."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("folders", type=Path, nargs="+", metavar="FOLDER", help="model or run folder")
    status = 0
    for path in parser.parse_args(arguments).folders:
        steps = [] if is_listed(path) else checkpoint_steps(path)
        problems = list(_problems(path, steps))
        for problem in problems:
            print(printable(problem), file=sys.stderr)
        if problems:
            status = 1
        else:
            checked = counted(len(steps), "checkpoint") if steps else "all files"
            print(f"{path}: {checked} as written")
    return status


def _problems(path: Path, steps: Sequence[int]) -> Iterator[str]:
    """Yield what is wrong with a folder.

    Args:
        path: model folder, or run folder.
        steps: of the checkpoints of a run folder; none of a model folder.
    """
    for folder in [path / f"step_{step}" for step in steps] or [find_model(path)]:
        try:
            yield from differences(folder)
        except UserError as error:
            yield str(error)
    try:
        best = read_best(path) if steps else None
    except UserError as error:
        yield str(error)
        return
    if best is not None and best["step"] not in steps:
        yield f"{path / 'best.json'}: step {best['step']} has no checkpoint"
