"""Run the trainings and ensembles of a matrix, each in processes of the console command.

A folder is locked while a run works in it. Its processes inherit the lock, so that it holds until
the last of them ends. If this program is killed, they notice it, save their state and end.
"""

from __future__ import annotations

import os
import re
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
from typing import Any

from tqdm import tqdm

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.errors import UserError
from onmt_entmax.experiment.matrix import (
    Ensemble,
    Matrix,
    Training,
    Work,
    check_configuration,
    translation,
    write_configuration,
    write_yaml,
)
from onmt_entmax.experiment.measures import figures_of, measure
from onmt_entmax.files import remove_temporaries
from onmt_entmax.locks import LockedError, is_locked, locked
from onmt_entmax.options.reader import no_such_file
from onmt_entmax.options.train import training_setup
from onmt_entmax.options.translate import translation_setup
from onmt_entmax.processes import PARENT

_GLANCE = 2.0  # seconds between two looks at the log of a command
_SAID = 60.0  # seconds between two lines about the same command
_MEASURED = re.compile(rb"\d\d:\d\d:\d\d  (.+)\n")  # a line of `train` about its progress

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CONSOLE = (sys.executable, "-m", "onmt_entmax")  # the console command of this environment


class ExperimentError(UserError):
    """A command of the experiment failed; its log says why."""


class Stopped(Exception):
    """A signal has stopped this program."""


@dataclass
class Processes:
    """Running commands, to which signals to this program are passed on."""

    received: int = 0
    _running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _changing: threading.RLock = field(default_factory=threading.RLock)

    def run(
        self,
        command: Sequence[str],
        log: Path,
        core: int | None,
        watch: Callable[[int], None] = lambda start: None,
    ) -> None:
        """Run a command to its end.

        Args:
            command: a command of `onmt-entmax` and its arguments.
            log: the file to append its output to.
            core: the processor to run on, or None for any.
            watch: called every few seconds with the size that the log had at first, in bytes.

        Raises:
            Stopped: a signal came.
            ExperimentError: the command failed.
        """
        environment = {**os.environ, "OMP_NUM_THREADS": "1", PARENT: str(os.getpid())}
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
                    start_new_session=True,  # else a terminal would signal it too
                )
                self._running.add(process)
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            while (status := _wait(process)) is None:
                watch(start)
            with self._changing:
                self._running.remove(process)
        if self.received:
            raise Stopped
        if status != 0:
            raise ExperimentError(
                f"{command[0]} ended with status {status}: {last_line(log, start)}"
            )

    def pass_on(self, number: int, frame: FrameType | None = None) -> None:
        """Pass a signal on to every command; training saves its state and ends."""
        with self._changing:
            self.received = number
            for process in self._running:
                process.send_signal(number)

    @contextmanager
    def passing_on(self) -> Iterator[None]:
        """Pass signals on while the block runs, except for those ignored (by nohup, for one)."""
        heard = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, self.pass_on) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    """Wait a moment for the end of a process; return its status, or None if it runs."""
    try:
        return process.wait(_GLANCE)
    except subprocess.TimeoutExpired:
        return None


class Watch:
    """Shows how far a training is, from what it writes to its log.

    Each minute it says the last validation, or else the last line. On a terminal, the last line
    also stands at the bottom.

    Args:
        name: of the training.
        log: its log file.
        say: prints a line.
        bar: the line at the bottom.
    """

    def __init__(self, name: str, log: Path, say: Callable[[str], None], bar: tqdm[Any]) -> None:
        self._name, self._log, self._say, self._bar = name, log, say, bar
        self._read = 0  # bytes of the log
        self._said = time.monotonic()
        self._news: list[str] = []  # since then

    def __call__(self, start: int) -> None:
        """Look at the log, from byte `start` on."""
        with open(self._log, "rb") as file:
            file.seek(max(start, self._read))
            text = file.read()
        text = text[: text.rfind(b"\n") + 1]
        self._read = max(start, self._read) + len(text)
        self._news += [line.decode("utf-8", "replace") for line in _MEASURED.findall(text)]
        if not self._news:
            return
        self._bar.set_description_str(f"{self._name}: {' '.join(self._news[-1].split())}")
        if time.monotonic() - self._said >= _SAID:
            validations = [line for line in self._news if line.startswith("validation")]
            self._say(f"{self._name}: {[*self._news[-1:], *validations][-1]}")
            self._said, self._news = time.monotonic(), []


def last_line(log: Path, start: int) -> str:
    """Return the last error in a log, or else its last line, and the log's path.

    Args:
        log: the log file.
        start: its size when the command began, in bytes.
    """
    text = log.read_bytes()[start:].decode("utf-8", errors="replace")
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    errors = [line for line in lines if ": error: " in line]
    return f"{[*lines[-1:], *errors[-1:]][-1] if lines else 'it printed nothing'} ({log})"


class Runner:
    """Trains and measures the unfinished cells of a matrix.

    Args:
        matrix: the matrix.
        trainings: the runs to do, which `check` accepts. Ensembles follow when all runs of a cell
            are done.
        jobs: how many run at a time.
        cores: the processor of each job; empty for any.
    """

    def __init__(
        self, matrix: Matrix, trainings: Sequence[Training], jobs: int, cores: Sequence[int]
    ) -> None:
        self.matrix, self.jobs = matrix, max(1, min(jobs, len(trainings)))
        names = {training.name for training in trainings}
        # Trainings that wait for others come last, else they would block a job.
        self.trainings = sorted(trainings, key=lambda training: _waits(training, names))
        self.processes = Processes()
        self._over = {training.name: threading.Event() for training in trainings}
        self._claimed: set[str] = set()  # ensembles that a job here has started
        self._claiming = threading.Lock()
        self._cores: SimpleQueue[int | None] = SimpleQueue()
        for number in range(self.jobs):
            self._cores.put(cores[number] if cores else None)
        self._bar = tqdm(total=len(trainings), unit="run", disable=None)

    def run(self) -> int:
        """Run everything; return the exit status."""
        for training in self.trainings:
            if not is_locked(training.folder):
                write_configuration(training)
        with self.processes.passing_on(), self._bar, ThreadPoolExecutor(self.jobs) as pool:
            for done in [pool.submit(self._train, training) for training in self.trainings]:
                done.result()
        if self.processes.received:
            self._say("stopped; the same command continues")
            return 128 + self.processes.received
        undone = [work.name for work in self._asked() if figures_of(work) is None]
        if undone:
            self._say(f"not done: {', '.join(undone)}; the same command tries again")
        return 1 if undone else 0

    def _asked(self) -> Iterator[Work]:
        """Yield the trainings to do, and the ensembles of their cells that can be done."""
        yield from self.trainings
        cells = {training.cell.name for training in self.trainings}
        for ensemble in self.matrix.ensembles():
            if ensemble.cell.name in cells and all(map(figures_of, ensemble.members())):
                yield ensemble

    def _train(self, training: Training) -> None:
        """Finish a training, and the ensemble of its cell if it was the last one."""
        beginning = training.beginning()
        if beginning is not None and beginning.name in self._over:
            self._over[beginning.name].wait()  # it comes earlier in the queue
        core = self._cores.get()
        try:
            if self.processes.received:
                return
            if (awaited := _awaited(training)) is not None:
                self._say(f"{training.name}: waits for {awaited.name}: another process works on it")
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
        """Do a training or an ensemble, unless it is done or another process works on it."""
        started = time.monotonic()
        try:
            if figures_of(work) is not None:
                if isinstance(work, Training):  # an ensemble is checked after every member
                    self._say(f"{work.name}: done before")
                return
            if isinstance(work, Ensemble) and not self._claim(work):
                return
            with locked(work.folder):
                remove_temporaries(work.folder)
                log = work.folder / "log.txt"
                if isinstance(work, Training):
                    self._train_watched(work, log, core)
                self._say(f"{work.name}: decoding")
                self.processes.run(decoding_command(work), log, core)
                figures = measure(work)
        except Stopped:
            self._say(f"{work.name}: stopped")
        except LockedError as error:
            self._say(f"{work.name}: left to another process: {error}")
        except (UserError, OSError) as error:
            self._say(f"{work.name}: failed: {error}")
        else:
            first = next(iter(figures))
            minutes = (time.monotonic() - started) / 60
            self._say(f"{work.name}: {first} {figures[first]:.2f}, {minutes:.1f} minutes")

    def _train_watched(self, training: Training, log: Path, core: int | None) -> None:
        place = f"{self.trainings.index(training) + 1} of {len(self.trainings)}"
        self._say(f"{training.name}: training ({place})")
        name = f"{training.name} ({place})"
        bar: tqdm[Any] = tqdm(
            bar_format="{desc}", leave=False, dynamic_ncols=True, disable=self._bar.disable
        )
        with bar:
            watch = Watch(name, log, self._say, bar)
            self.processes.run(training_command(training), log, core, watch)

    def _claim(self, ensemble: Ensemble) -> bool:
        """Return whether all members are done and no job here has started the ensemble."""
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
    """Return how many trainings of these names must run before this one."""
    beginning = training.beginning()
    return 0 if beginning is None or beginning.name not in names else 1 + _waits(beginning, names)


def _awaited(training: Training) -> Training | None:
    """Return the training of another process that this one must wait for, if any."""
    beginning = training.beginning()
    if beginning is None or checkpoint_steps(training.run) or figures_of(beginning) is not None:
        return None
    return beginning if is_locked(beginning.folder) else _awaited(beginning)


def check(matrix: Matrix, trainings: Sequence[Training]) -> None:
    """Check the files and options of trainings before anything is written.

    Raises:
        UserError: a file is missing, a configuration is wrong, or a run was trained with another
            one.
    """
    for path in (matrix.source, matrix.reference):
        if not path.is_file():
            raise UserError(f"{matrix.path}: {no_such_file(path)}")
    for training in trainings:
        if not is_locked(training.folder) and figures_of(training) is None:
            check_training(training)
            check_translation(training)
            check_configuration(training)


def check_training(training: Training) -> None:
    """Check the options of a training before anything is written.

    Raises:
        UserError: an option is wrong.
    """
    where = f"{training.matrix.path}: {training.cell.name}"
    _check_options(training_setup, training.options(), where)


def check_translation(training: Training) -> None:
    """Check the options of decoding before hours are spent on training.

    Raises:
        UserError: an option of `translate` is wrong.
    """
    options = {**translation(training), "model": [str(training.run)]}
    where = f"{training.matrix.path}: translate of {training.cell.name}"
    _check_options(translation_setup, options, where)


def _check_options(
    read: Callable[[Sequence[str]], object], options: Mapping[str, Any], where: str
) -> None:
    """Check options; errors begin with `where` they come from."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "options.yaml"
        write_yaml(path, options)
        try:
            read(["-config", str(path)])
        except UserError as error:
            message = str(error).removeprefix(f"{path}: ")
            raise UserError(f"{where}: {message}") from None


def decoding_command(work: Work) -> list[str]:
    """Write the configuration of the translation; return the command."""
    path = work.folder / "translate.yaml"
    write_yaml(path, translation(work))
    return ["translate", "-config", str(path)]


def training_command(training: Training) -> list[str]:
    """Write the configuration of a training; return the command, which continues if it can.

    Raises:
        UserError: the training that it starts from is not done.
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
