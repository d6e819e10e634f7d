"""Check that the files of model folders and run folders are as they were written.

    onmt-entmax verify run/mine/model
    onmt-entmax verify --accept run/mine/model/step_2000

Every model folder lists the checksums of its files in SHA256SUMS, which `sha256sum -c` reads too.
Of a run folder, all checkpoints and best.json are checked. Each file that is wrong, missing or not
listed is named; the exit status is then 1.

After a change by hand, --accept lists the files as they are now, if the model still loads.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.checkpoint import (
    accept,
    checkpoint_steps,
    find_model,
    read_best,
    read_config,
    remember_best,
)
from onmt_entmax.checksums import LIST_NAME, differences
from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.errors import UserError, counted


def model_folders(path: Path) -> list[Path]:
    """Return the model folder at `path`, or all checkpoints of the run folder there.

    Raises:
        CheckpointError: it is neither.
    """
    if (path / LIST_NAME).is_file():
        return [path]
    steps = [path / f"step_{step}" for step in checkpoint_steps(path)]
    return steps or [find_model(path)]


def verify_model(folder: Path) -> list[str]:
    """Return a line for each file of a model folder that is not as it was written."""
    try:
        if not (folder / LIST_NAME).exists():
            read_config(folder)  # warns that a folder of format 1.0 has no list, refuses others
            return []
        return differences(folder)
    except UserError as error:
        return [str(error)]


def verify_best(run: Path) -> list[str]:
    """Return a line if `best.json` of a run is damaged, or names a checkpoint that is not there."""
    try:
        best = read_best(run)
    except UserError as error:
        return [str(error)]
    if best is None or best["step"] in checkpoint_steps(run):
        return []
    return [f"{run / 'best.json'}: names step {best['step']}, of which there is no checkpoint"]


def accept_best(run: Path) -> None:
    """Record `best.json` of a run as it is.

    Raises:
        CheckpointError: it does not name a checkpoint, its measure and its value.
    """
    best = read_best(run, accepted=True)
    if best is not None:
        remember_best(run, best["step"], best["metric"], best["value"])


def main(arguments: Sequence[str]) -> int:
    """Check or accept the folders; return the exit status."""
    parser = argument_parser(__doc__)
    parser.add_argument(
        "folders", type=Path, nargs="+", metavar="FOLDER", help="model or run folder"
    )
    parser.add_argument("--accept", action="store_true", help="list the files as they are now")
    options = parser.parse_args(arguments)
    wrong = False
    for path in options.folders:
        folders = model_folders(path)
        is_run = folders != [path]
        if options.accept:
            for folder in folders:
                accept(folder)
                print(f"{folder}: accepted")
            if is_run:
                accept_best(path)
            continue
        found = [line for folder in folders for line in verify_model(folder)]
        found += verify_best(path) if is_run else []
        for line in found:
            print(line, file=sys.stderr)
        listed = sum((folder / LIST_NAME).exists() for folder in folders)
        if listed and not found:
            print(f"{path}: {counted(listed, 'checkpoint') if is_run else 'all files'} as written")
        wrong |= bool(found)
    return 1 if wrong else 0
