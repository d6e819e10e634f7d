"""Run the trainings of matrices: several commands at a time, which signals reach."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.cli import ending
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.files import write_files
from onmt_entmax.options.train import training_setup
from onmt_entmax.options.translate import translation_setup
from onmt_entmax.systems import ending_signals
from tools.papers.evaluation import check_unchanged, dumped, figures_of, measure
from tools.papers.matrix import Cell, Matrix, Work


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
        decoding = {**training.translation(), "model": [str(training.run)]}
        for read, options in ((training_setup, training.options()), (translation_setup, decoding)):
            try:
                _check_options(read, options)
            except UserError as error:
                where = f"{matrix.path}: {training.cell.name}"
                raise UserError(f"{where}: {error}") from None


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


class Stopped(Exception):
    """A signal has stopped this program."""


class Runner:
    """Runs commands, to which signals to this program are passed on.

    Args:
        cores: the processor of each job that runs at a time, or None for any.
    """

    def __init__(self, cores: Sequence[int | None]) -> None:
        self.received = 0
        self._running: set[subprocess.Popen[bytes]] = set()
        self._changing = threading.RLock()
        self._jobs, self._cores = len(cores), SimpleQueue[int | None]()
        for core in cores:
            self._cores.put(core)

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Pass signals on inside the block, except for those that are ignored, as by nohup."""

        def pass_on(number: int, _: object) -> None:
            with self._changing:
                self.received = number
                for process in self._running:
                    process.send_signal(number)  # training saves its state and ends

        before = {
            number: signal.signal(number, pass_on)
            for number in ending_signals()
            if signal.getsignal(number) != signal.SIG_IGN
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def execute(self, command: Sequence[str], log: Path, core: int | None = None) -> None:
        """Run a command of `onmt-entmax` to its end; append its output to a log.

        Raises:
            Stopped: a signal came.
            UserError: the command failed.
        """
        with open(log, "ab") as output:
            start = output.seek(0, os.SEEK_END)
            with self._changing:
                if self.received:
                    raise Stopped
                process = subprocess.Popen(
                    [*ending.CONSOLE, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env={**os.environ, "OMP_NUM_THREADS": "1"},
                    start_new_session=True,  # else a terminal would signal it too
                )
                self._running.add(process)
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            status = process.wait()
            with self._changing:
                self._running.remove(process)
        if self.received:
            raise Stopped
        if status:
            lines = log.read_bytes()[start:].decode(errors="replace").strip().splitlines()
            errors = [line for line in lines if ": error: " in line] or lines or ["no message"]
            raise UserError(f"{command[0]} ended with status {status}: {errors[-1]} ({log})")

    def decode(self, work: Work, core: int | None = None) -> None:
        """Decode the source with a training or ensemble."""
        path = work.output.with_name("translate.yaml")
        write_files({path: dumped(work.translation())})
        self.execute(["translate", "-config", str(path)], work.output.with_name("log.txt"), core)

    def _train(self, training: Work, core: int | None) -> None:
        """Train, or continue a training; one that is done ends at once."""
        path = training.folder / "config.yaml"
        command = ["train", "-config", str(path)]
        beginning = training.beginning()
        if checkpoint_steps(training.run):
            command += ["-train_from", str(training.run)]
            command += ["-reset_optim", "none"] if beginning is not None else []
        elif beginning is not None and figures_of(beginning) is None:
            raise UserError(f"begins with {beginning.name}, which is not done; run that first")
        write_files({path: dumped(training.options())})
        self.execute(command, training.folder / "log.txt", core)

    def work(self, work: Work) -> None:
        """Train, decode and measure, unless that is done."""
        started, core = time.monotonic(), self._cores.get()
        try:
            if figures_of(work) is not None:
                say(f"{work.name}: done before")
                return
            if work.seed is not None:
                say(f"{work.name}: training, see {work.folder / 'log.txt'}")
                self._train(work, core)
            say(f"{work.name}: decoding")
            self.decode(work, core)
            name, value = next(iter(measure(work).items()))
            say(f"{work.name}: {name} {value:.2f}, {(time.monotonic() - started) / 60:.1f} minutes")
        except Stopped:
            pass
        except (UserError, OSError) as error:
            say(f"{work.name}: failed: {error}")
        finally:
            self._cores.put(core)

    def all(self, works: Sequence[Work]) -> None:
        """Do trainings or ensembles, several at a time."""
        with ThreadPoolExecutor(self._jobs) as pool:
            for future in [pool.submit(self.work, work) for work in works]:
                future.result()  # raises what the work raised


def say(message: str) -> None:
    """Print a line about progress to stderr."""
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)


def depth(cell: Cell) -> int:
    """Return how many cells must be trained before this one."""
    return 0 if cell.begin_with is None else 1 + depth(cell.begin_with)


def processors(names: str, jobs: int) -> list[int | None]:
    """Return the processor of each job; None leaves the choice to the system.

    Args:
        names: such as `0,1`; empty: none.
        jobs: their number.

    Raises:
        UserError: the processors are too few or not there, or the system binds no process to one.
    """
    if not names:
        return [None] * jobs
    if not hasattr(os, "sched_getaffinity"):
        raise UserError("--cores: this system binds no process to a processor; leave it out")
    try:
        cores = [int(number) for number in names.split(",")]
    except ValueError:
        raise UserError(f"--cores: expected numbers such as 0,1 not {names}") from None
    available = sorted(os.sched_getaffinity(0))
    if len(cores) < jobs or not set(cores) <= set(available):
        raise UserError(f"--cores: name {jobs} of the processors {available}")
    return [*cores[:jobs]]


def run(options: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Train and measure all unfinished cells, pair by pair; return the exit status."""
    cores = processors(options.cores, options.jobs)
    chosen = [(matrix, chosen_trainings(matrix, options)) for matrix in matrices]
    for matrix, trainings in chosen:  # all, before hours are spent on the first
        check(matrix, trainings)
    runner, undone = Runner(cores), []
    with runner.hearing():
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
    """Do trainings, those first that others begin with, then ensembles; return both."""
    for level in sorted({depth(training.cell) for training in trainings}):
        runner.all([training for training in trainings if depth(training.cell) == level])
    cells = {training.cell.name for training in trainings}
    ensembles = [
        ensemble
        for ensemble in matrix.ensembles()
        if ensemble.cell.name in cells and all(map(figures_of, ensemble.members()))
    ]
    runner.all(ensembles)
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
    names, seeds = options.only or cells, options.seeds or matrix.seeds
    return [
        training
        for training in matrix.trainings()
        if training.cell.name in names and training.seed in seeds
    ]
