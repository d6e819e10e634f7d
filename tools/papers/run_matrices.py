"""The command `tools.papers.tables run`: check matrices, then run their jobs that are not done."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from onmt_entmax.errors import UserError, nearest
from onmt_entmax.options.train import training_setup
from onmt_entmax.options.translate import translation_setup
from tools.papers.commands import Commands
from tools.papers.job_figures import figures_of
from tools.papers.job_runner import Runner
from tools.papers.matrix import Job, Matrix, Training
from tools.papers.option_files import to_yaml
from tools.papers.processors import processors
from tools.papers.progress import say
from tools.papers.trained_options import check_unchanged


def run(options: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Train and measure all unfinished cells, pair by pair.

    Args:
        options: `only` and `seeds`: names of cells, and seeds, to run; empty: all. `cores` and
            `jobs`: see `processors`.
        matrices: one for each pair of languages.

    Returns:
        The exit status: 0 if all is done; 1 if something failed; 128 and the number of the signal
        that stopped it, as shells do.

    Raises:
        UserError: an option or a matrix is wrong; then nothing runs.
    """
    cores = processors(options.cores, options.jobs)
    chosen = [(matrix, _chosen_trainings(matrix, options)) for matrix in matrices]
    for matrix, trainings in chosen:  # all, before hours are spent on the first
        _check(matrix, trainings)
    commands = Commands()
    runner = Runner(commands, cores)
    jobs: list[Job] = []
    with commands.passing_signals_on():
        for matrix, trainings in chosen:
            jobs += _run_matrix(runner, matrix, trainings)
    if commands.received:
        say("stopped; the same command continues")
        return 128 + commands.received
    undone = [job.name for job in jobs if figures_of(job) is None]
    if undone:
        say(f"not done: {', '.join(undone)}; the same command tries again")
    return 1 if undone else 0


def _chosen_trainings(matrix: Matrix, options: argparse.Namespace) -> list[Training]:
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


def _check(matrix: Matrix, trainings: Sequence[Training]) -> None:
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
    """Check options by the command's own reader, which reads them from a file.

    Args:
        read: reads the arguments of a command.
        options: options by name.

    Raises:
        UserError: the options are wrong; the message is without the name of the temporary file.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "options.yaml")
        path.write_text(to_yaml(options), encoding="utf-8")
        try:
            read(["-config", str(path)])
        except UserError as error:
            raise UserError(str(error).removeprefix(f"{path}: ")) from None


def _run_matrix(runner: Runner, matrix: Matrix, trainings: Sequence[Training]) -> list[Job]:
    """Run trainings, then ensembles; return both. After a signal, the runner runs no more jobs.

    Trainings whose weights others begin with come first. The ensembles are those of the cells of
    these trainings whose members are all done.
    """
    for depth in sorted({training.cell.depth for training in trainings}):
        runner.run_jobs([training for training in trainings if training.cell.depth == depth])
    cells = {training.cell.name for training in trainings}
    ensembles = [
        ensemble
        for ensemble in matrix.ensembles()
        if ensemble.cell.name in cells and all(map(figures_of, ensemble.members()))
    ]
    runner.run_jobs(ensembles)
    return [*trainings, *ensembles]
