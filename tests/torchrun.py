"""Commands in several processes on this machine, as `torchrun` starts them."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.commands import ENVIRONMENT, ROOT
from tests.shared_server import run_in_fork, server_socket

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="finds the workers through /proc"
)

_PATIENCE = 300  # seconds that two processes may take


def torchrun(processes: int, *arguments: object, script: str = "train.py") -> list[str]:
    """Return the command line of a run with several processes.

    Args:
        processes: their number.
        arguments: arguments of the script.
        script: its path, from the root of the repository.
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


def run_both(script: str, *arguments: object) -> list[subprocess.CompletedProcess[str]]:
    """Run two processes to their end, as `torchrun` would, whose own start takes many seconds.

    They are forks of the server of commands, in the environment that `torchrun` gives them. Where
    there is no server, `torchrun` starts them.

    Args:
        script: its path, from the root of the repository.
        arguments: arguments of the script.

    Returns:
        The process of each rank; or that of `torchrun`, with what both have printed.
    """
    server = server_socket()
    if server is None:
        command = torchrun(2, *arguments, script=script)
        return [
            subprocess.run(
                command, env=ENVIRONMENT, capture_output=True, text=True, timeout=_PATIENCE
            )
        ]
    meeting = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}

    def run(rank: str) -> subprocess.CompletedProcess[str]:
        environment = {**ENVIRONMENT, **meeting, "RANK": rank, "LOCAL_RANK": rank}
        texts = [*map(str, arguments)]
        return run_in_fork(server, str(ROOT / script), texts, Path.cwd(), _PATIENCE, environment)

    with ThreadPoolExecutor(2) as threads:
        return [*threads.map(run, ("0", "1"))]


def settings(folder: Path, **changes: object) -> dict[str, object]:
    """Return options of a training in a folder.

    Without dropout, whose masks are the one thing that differs between numbers of processes.
    """
    return {"dropout": 0.0, "save_model": str(folder), "train_steps": 20} | changes


def children(pid: int) -> list[int]:
    """Return the child processes of a process."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()]


@contextmanager
def training(config: Path, script: str = "train.py") -> Iterator[subprocess.Popen[str]]:
    """Start two processes, and wait until they have reported step 30.

    Whatever is left of them at the end of the block is killed.

    Args:
        config: the YAML file, with a report every ten steps.
        script: see `torchrun`.

    Yields:
        The process of `torchrun`, of whose standard error the lines up to the report are read.
    """
    command = torchrun(2, "-config", config, script=script)
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    try:
        assert any(" 30/10" in line for line in process.stderr)
        yield process
    finally:
        workers = children(process.pid) if process.poll() is None else []
        for pid in workers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.kill()
        process.communicate(timeout=60)
