"""`tools.papers.tables run`: check matrices, then train and measure what is not done."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from onmt_entmax.errors import UserError, nearest
from onmt_entmax.options.train import training_setup
from onmt_entmax.options.translate import translation_setup
from tools.papers.matrix import Cell, Matrix, Work
from tools.papers.run_figures import figures_of
from tools.papers.runner import Runner, say
from tools.papers.trained_options import check_unchanged, dumped


def check(matrix: Matrix, trainings: Sequence[Work]) -> None:
    """Check the files and options of trainings before anything is written.

    Raises:
        UserError: a file is missing, a configuration is wrong, or a run was trained with another.
    """
    for path in (matrix.source, matrix.reference):
        if not path.is_file():
            raise UserError(f"{matrix.path}: no such file: {path} (searched in {Path.cwd()})")
    for training in trainings:
        check_unchanged(training)
        decoding = {**training.decoding_options(), "model": [str(training.run_folder)]}
        try:
            _check_options(training_setup, training.training_options())
            _check_options(translation_setup, decoding)
        except UserError as error:
            raise UserError(f"{matrix.path}: {training.cell.name}: {error}") from None


def _check_options(read: Callable[[list[str]], object], options: Mapping[str, Any]) -> None:
    """Read options as a command would.

    Raises:
        UserError: says what is wrong with them, without the name of the temporary file.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "options.yaml")
        path.write_text(dumped(options), encoding="utf-8")
        try:
            read(["-config", str(path)])
        except UserError as error:
            raise UserError(str(error).removeprefix(f"{path}: ")) from None


def _depth(cell: Cell) -> int:
    """Return how many cells must be trained before this one."""
    return 0 if cell.begin_with is None else 1 + _depth(cell.begin_with)


def processors(names: str | None, jobs: int) -> list[int | None]:
    """Return the processor of each job; None leaves the choice to the system.

    Args:
        names: numbers of different processors, such as `0,1`; None or "": the system chooses.
        jobs: number of jobs.

    Raises:
        UserError: the processors are too few, not there or repeated, or the system binds no process
            to one.
    """
    if not names:
        return [None for _ in range(jobs)]
    if not hasattr(os, "sched_getaffinity"):
        raise UserError("--cores: this system binds no process to a processor; leave it out")
    try:
        cores = [int(number) for number in names.split(",")]
    except ValueError:
        raise UserError(f"--cores: expected numbers such as 0,1, not {names}") from None
    if len({*cores}) < len(cores):
        raise UserError(f"--cores: {names} names a processor twice")
    available = sorted(os.sched_getaffinity(0))
    if len(cores) < jobs or not {*cores} <= {*available}:
        raise UserError(f"--cores: name {jobs} of the processors {available}")
    return list(cores[:jobs])


def run(options: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Train and measure all unfinished cells, pair by pair.

    Returns:
        The exit status: 0 if all is done; 1 if something failed; 128 and the number of the signal
        that stopped it, as shells do.

    Raises:
        UserError: an option or a matrix is wrong; then nothing runs.
    """
    cores = processors(options.cores, options.jobs)
    chosen = [(matrix, chosen_trainings(matrix, options)) for matrix in matrices]
    for matrix, trainings in chosen:  # all, before hours are spent on the first
        check(matrix, trainings)
    runner = Runner(cores)
    undone = []
    with runner.passing_signals_on():
        for matrix, trainings in chosen:
            works = _run_all(runner, matrix, trainings)
            undone += [work.name for work in works if figures_of(work) is None]
    if runner.received:
        say("stopped; the same command continues")
        return 128 + runner.received
    if undone:
        say(f"not done: {', '.join(undone)}; the same command tries again")
    return 1 if undone else 0


def _run_all(runner: Runner, matrix: Matrix, trainings: Sequence[Work]) -> list[Work]:
    """Do trainings, those first that others begin with, then ensembles; return both.

    Only ensembles are done whose members all are, and of the cells of these trainings.
    """
    for level in sorted({_depth(training.cell) for training in trainings}):
        runner.do_all([training for training in trainings if _depth(training.cell) == level])
    cells = {training.cell.name for training in trainings}
    ensembles = [
        ensemble
        for ensemble in matrix.ensembles()
        if ensemble.cell.name in cells and all(map(figures_of, ensemble.members()))
    ]
    runner.do_all(ensembles)
    return [*trainings, *ensembles]


def chosen_trainings(matrix: Matrix, options: argparse.Namespace) -> list[Work]:
    """Return the trainings that --only and --seeds name; all by default.

    Raises:
        UserError: the matrix has no such cell or seed.
    """
    cells = [cell.name for cell in matrix.cells]
    for name in options.only:
        if name not in cells:
            raise UserError(f"{matrix.path}: no cell {name!r}{nearest(name, cells)}")
    for seed in options.seeds:
        if seed not in matrix.seeds:
            raise UserError(f"{matrix.path}: seed {seed} is not among {list(matrix.seeds)}")
    names = options.only or cells
    seeds = options.seeds or matrix.seeds
    return [
        training
        for training in matrix.trainings()
        if training.cell.name in names and training.seed in seeds
    ]
