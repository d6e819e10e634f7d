"""Run jobs of matrices, several at a time, until a signal comes.

Each job has a thread that waits for one command after the other. The main thread gets the signals
and passes them on to the commands, which save their state and end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import BinaryIO

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.cli import ending
from onmt_entmax.errors import UserError
from onmt_entmax.files import write_files
from onmt_entmax.systems import ending_signals
from tools.papers.evaluation import EVALUATE
from tools.papers.job_figures import figures_of, measure
from tools.papers.matrix import Job, Training
from tools.papers.trained_options import to_yaml


class Stopped(Exception):
    """A signal has stopped this program."""


class Runner:
    """Runs commands, and passes signals to this program on to them.

    A training that gets a signal saves its state, so the same command continues later.

    Args:
        cores: processors, one for each job that may run at a time; None: any processor.

    Attributes:
        received: number of the last signal that came; 0: none.
    """

    def __init__(self, cores: Sequence[int | None]) -> None:
        self.received = 0
        self._running: set[subprocess.Popen[bytes]] = set()
        # Guards `received` and `_running`: a command that starts must not miss a signal. It is
        # re-entrant, since the handler may interrupt the main thread while that holds it.
        self._changing = threading.RLock()
        self._jobs = len(cores)
        self._free_cores = SimpleQueue[int | None]()
        for core in cores:
            self._free_cores.put(core)

    @contextmanager
    def passing_signals_on(self) -> Iterator[None]:
        """Pass signals on inside the block, except for those that are ignored, as by nohup."""

        def pass_on(number: int, _: object) -> None:
            with self._changing:
                self.received = number
                for process in self._running:
                    process.send_signal(number)

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
        """Run a command of `onmt-entmax` to its end.

        Args:
            command: name and arguments of the command.
            log: file to which its output is appended.
            core: processor on which it runs; None: any.

        Raises:
            Stopped: a signal came.
            UserError: the command failed.
        """
        with open(log, "ab") as output:
            start = output.seek(0, os.SEEK_END)
            process = self._start(command, output)
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            status = process.wait()
            with self._changing:
                self._running.remove(process)
        if self.received:
            raise Stopped
        if status:
            reason = _error_in(log.read_bytes()[start:].decode(errors="replace"))
            raise UserError(f"{command[0]} ended with status {status}: {reason} ({log})")

    def _start(self, command: Sequence[str], output: BinaryIO) -> subprocess.Popen[bytes]:
        """Start a command that prints to a file, and pass signals on to it from here on.

        Raises:
            Stopped: a signal came before.
        """
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
            # On the main thread, the handler may have run since the check above: it did not find
            # the process. Other threads hold the lock for which the handler waits.
            if self.received:
                process.send_signal(self.received)
        return process

    def decode(self, job: Job, core: int | None = None) -> None:
        """Decode the text of a training or ensemble with its models.

        Args:
            job: a training that is done, or an ensemble of such.
            core: processor on which to decode; None: any.

        Raises:
            Stopped: a signal came.
            UserError: the command failed.
        """
        path = job.output.with_name("translate.yaml")
        write_files({path: to_yaml(job.decoding_options())})
        self.execute(["translate", "-config", str(path)], job.output.with_name("log.txt"), core)

    def _train(self, training: Training, core: int | None) -> None:
        """Start a training, or continue it; the command ends at once if the training is done.

        Raises:
            Stopped: a signal came.
            UserError: the command failed, or the training whose weights it starts from is not done.
        """
        path = training.folder / "config.yaml"
        command = ["train", "-config", str(path)]
        initial = training.initial_training()
        if checkpoint_steps(training.run_folder):
            command += ["-train_from", str(training.run_folder)]
            if initial is not None:  # its weights were taken at the first start
                command += ["-reset_optim", "none"]
        elif initial is not None and figures_of(initial) is None:
            raise UserError(f"begins with {initial.name}, which is not done; run that first")
        write_files({path: to_yaml(training.training_options())})
        self.execute(command, training.folder / "log.txt", core)

    def _run_job(self, job: Job) -> None:
        """Train, decode and measure on a free core, unless that is done; print what happens."""
        started = time.monotonic()
        core = self._free_cores.get()
        try:
            if self.received:
                return
            if figures_of(job) is not None:
                say(f"{job.name}: done before")
                return
            if isinstance(job, Training):
                say(f"{job.name}: training, see {job.folder / 'log.txt'}")
                self._train(job, core)
            say(f"{job.name}: decoding")
            self.decode(job, core)
            name = EVALUATE[job.matrix.evaluate].main
            value = measure(job)[name]
            minutes = (time.monotonic() - started) / 60
            say(f"{job.name}: {name} {value:.2f}, {minutes:.1f} minutes")
        except Stopped:
            pass  # `run_matrices.run` says so, once for all jobs
        except (UserError, OSError) as error:
            say(f"{job.name}: failed: {error}")
        finally:
            self._free_cores.put(core)

    def run_jobs(self, jobs: Sequence[Job]) -> None:
        """Run jobs, several at a time; print errors, and go on with the others."""
        with ThreadPoolExecutor(self._jobs) as pool:
            for future in [pool.submit(self._run_job, job) for job in jobs]:
                future.result()  # raises errors that `_run_job` does not catch: bugs


def _error_in(printed: str) -> str:
    """Return the last error line that a command printed; without one, its last line."""
    lines = printed.strip().splitlines()
    errors = [line for line in lines if ": error: " in line]
    candidates = errors or lines or ["no message"]
    return candidates[-1]


def say(message: str) -> None:
    """Print a line about progress to stderr."""
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)
