"""Run the jobs of matrices, several at a time: trainings, decodings and evaluations."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.errors import UserError
from onmt_entmax.files import write_files
from tools.papers.commands import Commands, Stopped
from tools.papers.evaluation import EVALUATE
from tools.papers.job_figures import figures_of, measure
from tools.papers.matrix import Job, Training
from tools.papers.option_files import to_yaml
from tools.papers.progress import say


class Runner:
    """Runs jobs, each in a thread that waits for its commands, one after the other.

    A training that gets a signal saves its state, so the same command continues later.

    Args:
        commands: runs the commands of all jobs.
        cores: processors, one for each job that may run at a time; None: any processor.
    """

    def __init__(self, commands: Commands, cores: Sequence[int | None]) -> None:
        self._commands = commands
        self._jobs = len(cores)
        self._free_cores = SimpleQueue[int | None]()
        for core in cores:
            self._free_cores.put(core)

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
        self._commands.execute(
            ["translate", "-config", str(path)], job.output.with_name("log.txt"), core
        )

    def run_jobs(self, jobs: Sequence[Job]) -> None:
        """Run jobs, several at a time; print errors, and go on with the others."""
        with ThreadPoolExecutor(self._jobs) as pool:
            for future in [pool.submit(self._run_job, job) for job in jobs]:
                future.result()  # raises errors that `_run_job` does not catch: bugs

    def _run_job(self, job: Job) -> None:
        """Run a job on a free core, and print its errors; after a signal, run nothing."""
        core = self._free_cores.get()
        try:
            if not self._commands.received:
                self._train_decode_and_measure(job, core)
        except Stopped:
            pass  # `run_matrices.run` says so, once for all jobs
        except (UserError, OSError) as error:
            say(f"{job.name}: failed: {error}")
        finally:
            self._free_cores.put(core)

    def _train_decode_and_measure(self, job: Job, core: int | None) -> None:
        """Run the steps of a job, unless it is done; print each step.

        Raises:
            Stopped: a signal came.
            UserError: a command failed, or a file is missing or damaged.
        """
        if figures_of(job) is not None:
            say(f"{job.name}: done before")
            return
        started = time.monotonic()
        if isinstance(job, Training):
            say(f"{job.name}: training, see {job.folder / 'log.txt'}")
            self._train(job, core)
        say(f"{job.name}: decoding")
        self.decode(job, core)
        name = EVALUATE[job.matrix.evaluate].main
        value = measure(job)[name]
        minutes = (time.monotonic() - started) / 60
        say(f"{job.name}: {name} {value:.2f}, {minutes:.1f} minutes")

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
        self._commands.execute(command, training.folder / "log.txt", core)
