"""Runs the trainings and ensembles of a matrix, in processes of train.py and translate.py.

A process of its own for each keeps memory small and a crash apart. Every folder is locked while
someone works in it, and the lock is handed to the processes there: it holds until the last of
them is gone, even if this program is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from types import FrameType
from typing import IO, Any

from tqdm import tqdm

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.errors import UserError
from onmt_entmax.experiment.matrix import (
    Ensemble,
    Matrix,
    Training,
    Work,
    translation,
    write_configuration,
    write_yaml,
)
from onmt_entmax.experiment.measures import figures_of, measure
from onmt_entmax.files import is_locked, locked
from onmt_entmax.options.train import training_setup
from onmt_entmax.options.translate import translation_setup

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CONSOLE = (sys.executable, "-m", "onmt_entmax")  # the console command, in this environment


class ExperimentError(UserError):
    """A process of the experiment failed; its log says why."""


class Stopped(Exception):
    """A signal has asked this program to end."""


@dataclass
class Processes:
    """The processes that work at this moment; a signal to this program is passed on to them."""

    received: int = 0
    _running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _changing: threading.RLock = field(default_factory=threading.RLock)

    def run(self, command: Sequence[str], log: Path, core: int | None, lock: IO[str]) -> None:
        """Run a command to its end, with its output appended to `log`.

        Args:
            command: a console command and its arguments.
            log: the file.
            core: the processor to stay on, or None for any.
            lock: an open file that the process holds open too.

        Raises:
            Stopped: a signal came before or meanwhile.
            ExperimentError: the status of the command is not 0.
        """
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        with open(log, "ab") as output:
            start = output.seek(0, os.SEEK_END)
            with self._changing:
                if self.received:
                    raise Stopped
                process = subprocess.Popen(
                    [*CONSOLE, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=environment,
                    pass_fds=[lock.fileno()],
                    start_new_session=True,  # so that a terminal's signal comes once, from here
                )
                self._running.add(process)
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            status = process.wait()
            with self._changing:
                self._running.remove(process)
        if self.received:
            raise Stopped
        if status != 0:
            raise ExperimentError(
                f"{command[0]} ended with status {status}: {last_line(log, start)}"
            )

    def pass_on(self, number: int, frame: FrameType | None = None) -> None:
        """Note a signal and send it to every process; training saves and ends."""
        with self._changing:
            self.received = number
            for process in self._running:
                process.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)

    @contextmanager
    def passing_on(self) -> Iterator[None]:
        """Pass signals on while the block runs; those that are ignored (by nohup, say) stay so."""
        heard = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, self.pass_on) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def last_line(log: Path, start: int) -> str:
    """The last error that a command wrote to its log, or else the last line; and where it is.

    Args:
        log: the file, to which earlier commands may have written.
        start: the size it had when the command began.
    """
    text = log.read_bytes()[start:].decode("utf-8", errors="replace")
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    errors = [line for line in lines if ": error: " in line]
    return f"{[*lines[-1:], *errors[-1:]][-1] if lines else 'it printed nothing'} ({log})"


class Runner:
    """Does what is left to do of a matrix.

    Args:
        trainings: which of its runs; ensembles follow where all runs of a cell are done.
        jobs: how many at a time.
        cores: processors for them, one each; empty for no choice.
    """

    def __init__(
        self, matrix: Matrix, trainings: Sequence[Training], jobs: int, cores: Sequence[int]
    ) -> None:
        self.matrix, self.jobs = matrix, jobs
        names = {training.name for training in trainings}
        # Those that wait for others come last, or they would keep a core from those that do not.
        self.trainings = sorted(trainings, key=lambda training: _waits(training, names))
        self.processes = Processes()
        self.failed = 0
        self._over = {training.name: threading.Event() for training in trainings}
        self._claimed: set[str] = set()  # ensembles, which several trainings could begin
        self._claiming = threading.Lock()
        self._cores: SimpleQueue[int | None] = SimpleQueue()
        for number in range(jobs):
            self._cores.put(cores[number] if cores else None)
        self._bar = tqdm(total=len(trainings), unit="run", disable=None)

    def run(self) -> int:
        """Run everything; returns the exit status.

        Raises:
            UserError: before anything is started: a file is missing, a configuration is wrong, or
                is another one than a run in its folder was trained with.
        """
        for path in (self.matrix.source, self.matrix.reference):
            if not path.is_file():
                raise UserError(f"{self.matrix.path}: no such file: {path}")
        for training in self.trainings:
            if is_locked(training.folder):
                continue
            if figures_of(training) is None:
                check_training(training)
                check_translation(training)
            write_configuration(training)
        with self.processes.passing_on(), self._bar, ThreadPoolExecutor(self.jobs) as pool:
            for done in [pool.submit(self._train, training) for training in self.trainings]:
                done.result()
        if self.processes.received:
            self._say("stopped; the same command continues")
            return 128 + self.processes.received
        return 1 if self.failed else 0

    def _train(self, training: Training) -> None:
        """One training from wherever it stands to its figures, and the ensemble of its cell."""
        beginning = training.beginning()
        if beginning is not None and beginning.name in self._over:
            self._over[beginning.name].wait()  # it has an earlier place in the queue
        core = self._cores.get()
        try:
            if self.processes.received:
                return
            if (awaited := _awaited(training)) is not None:
                self._say(f"{training.name}: waits for {awaited.name}: another process is at it")
                return
            self._work(training, core)
            for ensemble in self.matrix.ensembles():
                if ensemble.cell == training.cell:
                    self._work(ensemble, core)
            self._bar.update()
        finally:
            self._over[training.name].set()
            self._cores.put(core)

    def _work(self, work: Work, core: int | None) -> None:
        """A training or an ensemble, unless it is done or someone else is at it."""
        started = time.monotonic()
        try:
            if figures_of(work) is not None:
                if isinstance(work, Training):  # an ensemble is looked at after every member
                    self._say(f"{work.name}: done before")
                return
            if isinstance(work, Ensemble) and not self._claim(work):
                return
            with locked(work.folder) as lock:
                if lock is None:
                    self._say(f"{work.name}: another process is at it")
                    return
                log = work.folder / "log.txt"
                if isinstance(work, Training):
                    self._say(f"{work.name}: training")
                    self.processes.run(training_command(work), log, core, lock)
                self._say(f"{work.name}: decoding")
                self.processes.run(decoding_command(work), log, core, lock)
                figures = measure(work)
        except Stopped:
            self._say(f"{work.name}: stopped")
        except (UserError, OSError) as error:
            self.failed += 1
            self._say(f"{work.name}: failed: {error}")
        else:
            first = next(iter(figures))
            minutes = (time.monotonic() - started) / 60
            self._say(f"{work.name}: {first} {figures[first]:.2f}, {minutes:.1f} minutes")

    def _claim(self, ensemble: Ensemble) -> bool:
        """Whether an ensemble can be decoded with now, and nobody here has begun or tried to."""
        if not all(map(figures_of, ensemble.members())):
            return False
        with self._claiming:
            mine = ensemble.name not in self._claimed
            self._claimed.add(ensemble.name)
        return mine

    def _say(self, message: str) -> None:
        self._bar.write(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr)
        sys.stderr.flush()


def _waits(training: Training, names: Collection[str]) -> int:
    """How many trainings of these names come one after the other before this one."""
    beginning = training.beginning()
    return 0 if beginning is None or beginning.name not in names else 1 + _waits(beginning, names)


def _awaited(training: Training) -> Training | None:
    """A training that another process is at, without which this one cannot begin; None for none."""
    beginning = training.beginning()
    if beginning is None or checkpoint_steps(training.run) or figures_of(beginning) is not None:
        return None
    return beginning if is_locked(beginning.folder) else _awaited(beginning)


def check_training(training: Training) -> None:
    """Read the options of a training, before anything is written.

    Raises:
        UserError: one of them is wrong.
    """
    where = f"{training.matrix.path}: {training.cell.name}"
    _check_options(training_setup, training.options(), where)


def check_translation(training: Training) -> None:
    """Read the options that a training will be decoded with, before hours are spent on it.

    Raises:
        UserError: an option of `translate` is wrong.
    """
    options = {**translation(training), "model": [str(training.run)]}
    where = f"{training.matrix.path}: translate of {training.cell.name}"
    _check_options(translation_setup, options, where)


def _check_options(
    read: Callable[[Sequence[str]], object], options: Mapping[str, Any], where: str
) -> None:
    """Read options that no file holds yet; errors say where they come from."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "options.yaml"
        write_yaml(path, options)
        try:
            read(["-config", str(path)])
        except UserError as error:
            message = str(error).removeprefix(f"{path}: ")
            raise UserError(f"{where}: {message}") from None


def decoding_command(work: Work) -> list[str]:
    """What decodes the development set to `dev.pred` and `dev.report.jsonl`; writes the
    configuration that this needs."""
    path = work.folder / "translate.yaml"
    write_yaml(path, translation(work))
    return ["translate", "-config", str(path)]


def training_command(training: Training) -> list[str]:
    """`train.py` for a training; it continues from the newest checkpoint where there is one.

    Raises:
        UserError: it begins with the weights of a training that is not done.
    """
    command = ["train", "-config", str(write_configuration(training))]
    beginning = training.beginning()
    if checkpoint_steps(training.run):
        command += ["-train_from", str(training.run)]
        if beginning is not None:
            command += ["-reset_optim", "none"]
    elif beginning is not None and figures_of(beginning) is None:
        raise UserError(f"begins with {beginning.name}, which is not done; run that first")
    return command
