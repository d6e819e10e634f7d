"""Commands in several processes on this machine, as `torchrun` starts them."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.child_processes import children_of
from tests.commands import ENVIRONMENT, ROOT
from tests.shared_server import run_in_fork, server_socket

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="finds the workers through /proc"
)

_PATIENCE = 300  # seconds that two processes may take, to their end or to the report of a step
_REPORTED_STEP = 30


class Ended(NamedTuple):
    """What came of two processes.

    Attributes:
        statuses: their exit statuses; only that of `torchrun`, if it started them.
        output: what both wrote to the standard output.
        errors: what both wrote to the standard error.
    """

    statuses: tuple[int, ...]
    output: str
    errors: str


def torchrun(processes: int, *arguments: object, script: str = "train.py") -> list[str]:
    """Return the command line by which `torchrun` runs a script in several processes.

    Args:
        processes: number of processes.
        arguments: arguments of the script.
        script: path of the script, from the root of the repository.
    """
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(processes)]
    address = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    return [*launcher, *address, str(ROOT / script), *map(str, arguments)]


def free_port() -> int:
    """Return a port of this machine on which nothing listens."""
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        port: int = listening.getsockname()[1]
    return port


def run_both(script: str, *arguments: object) -> Ended:
    """Run a script in two processes, and wait for both.

    They are forks of the server of commands, with the environment that `torchrun` would give them:
    `torchrun` itself takes many seconds to start. It starts them only where there is no server.

    Args:
        script: path of the script, from the root of the repository.
        arguments: arguments of the script.
    """
    server = server_socket()
    if server is None:
        command = torchrun(2, *arguments, script=script)
        launcher = subprocess.run(
            command, env=ENVIRONMENT, capture_output=True, text=True, timeout=_PATIENCE
        )
        return Ended((launcher.returncode,), launcher.stdout, launcher.stderr)
    meeting = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}

    def run(rank: str) -> subprocess.CompletedProcess[str]:
        environment = {**ENVIRONMENT, **meeting, "RANK": rank, "LOCAL_RANK": rank}
        texts = [*map(str, arguments)]
        return run_in_fork(server, str(ROOT / script), texts, Path.cwd(), _PATIENCE, environment)

    with ThreadPoolExecutor(2) as threads:
        processes = [*threads.map(run, ("0", "1"))]
    return Ended(
        tuple(process.returncode for process in processes),
        "".join(process.stdout for process in processes),
        "".join(process.stderr for process in processes),
    )


def training_options(run: Path, **changes: object) -> dict[str, object]:
    """Return options of a training whose weights do not depend on the number of processes.

    Dropout is off: each process would draw its own masks.

    Args:
        run: folder of the run.
        changes: further options, and values in place of these.
    """
    return {"dropout": 0.0, "save_model": str(run), "train_steps": 20} | changes


@contextmanager
def started_training(config: Path, script: str = "train.py") -> Iterator[subprocess.Popen[str]]:
    """Start a training in two processes, and wait for the report of step 30.

    All processes that still run at the end of the block are killed.

    Args:
        config: the YAML file of the training, with a report every ten steps.
        script: path of the script that trains, from the root of the repository.

    Yields:
        The process of `torchrun`. Its standard error was read up to the report.
    """
    command = torchrun(2, "-config", config, script=script)
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    # `torchrun` passes this signal on to its workers, whose end closes the standard error.
    watchdog = threading.Timer(_PATIENCE, process.terminate)
    workers: set[int] = set()
    try:
        watchdog.start()
        report = re.compile(rf"step +{_REPORTED_STEP}/")
        assert any(report.search(line) for line in process.stderr), "no report in time"
        watchdog.cancel()
        # Listed now, since nobody lists the workers of a `torchrun` that the block has killed.
        workers.update(children_of(process.pid))
        yield process
    finally:
        watchdog.cancel()
        if process.poll() is None:
            workers.update(children_of(process.pid))
        for pid in workers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.kill()
        process.communicate(timeout=60)
