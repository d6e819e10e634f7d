"""Trainings in several processes, which `torchrun` starts on this machine."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.commands import ENVIRONMENT, ROOT

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="finds the workers through /proc"
)


def torchrun(processes: int, *arguments: object, script: str = "train.py") -> list[str]:
    """Return the command line of a run with several processes.

    Args:
        processes: their number.
        arguments: of the script.
        script: its path, from the root of the repository.
    """
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(processes)]
    address = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    return [*launcher, *address, str(ROOT / script), *map(str, arguments)]


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
        script: as in `torchrun`.

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
