"""Run the commands of the repository in processes of their own, and read what they write.

| function | process | the command |
|---|---|---|
| `run` | a fork of a warm interpreter, or a fresh one | ends in any way |
| `succeed`, `fail` | as `run` | must end so |
| `execute` | fresh | any program |
| `started` | fresh | runs beside the test |
| `console` | a fork, or a fresh one | the beginning of a command line, for `subprocess` |
| `python` | fresh | a module or script of the repository, and must succeed |
| `check_kernels` | fresh | pytest on Triton kernels |

`tests.in_process` runs a command's `main` in this process, which is faster.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from tests import command_client
from tests.shared_server import ENVIRONMENT, ROOT, run_in_fork, server_socket

__all__ = [
    "CONSOLE", "ENVIRONMENT", "ROOT", "check_kernels", "console", "execute", "fail", "json_lines",
    "python", "run", "started", "succeed", "weights",
]  # fmt: skip

CONSOLE = [sys.executable, "-m", "onmt_entmax"]

_PATIENCE = 300  # seconds that a command may take
_PYTEST_PATIENCE = 1200  # seconds that a run of pytest may take, beside others on a busy machine


def run(
    script: str, *arguments: object, cwd: Path | None = None, fresh: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a command of the repository, in a process of its own.

    Args:
        script: its path, from the root of the repository, or `onmt_entmax`: the console command.
        arguments: what follows on the command line.
        cwd: the working directory; this one, if None.
        fresh: start a new interpreter, rather than fork one that has loaded the libraries.
    """
    path = command_client.CONSOLE if script == command_client.CONSOLE else str(ROOT / script)
    texts = [*map(str, arguments)]
    socket = None if fresh else server_socket()
    if socket is None:
        program = CONSOLE if script == command_client.CONSOLE else [sys.executable, path]
        return execute([*program, *texts], cwd)
    return run_in_fork(socket, path, texts, cwd or Path.cwd(), _PATIENCE)


def console() -> list[str]:
    """Return the beginning of a command line of the console command, for streams of a test's own.

    It runs in a fork of a warm interpreter, which has the streams, the folder and the environment
    of the process that the command line starts, but not its limits. `CONSOLE` starts it anew.
    """
    socket = server_socket()
    return CONSOLE if socket is None else [*command_client.console_command(socket)]


def execute(command: Sequence[str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in a new process."""
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=ENVIRONMENT, timeout=_PATIENCE
    )


@contextmanager
def started(command: Sequence[object], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a process with options of `Popen`; it is killed at the end of the block, if need be."""
    with subprocess.Popen([*map(str, command)], **options) as process:
        try:
            yield process
        finally:
            process.kill()


def succeed(script: str, *arguments: object, cwd: Path | None = None) -> str:
    """Run a command that must succeed; return what it printed, warnings included.

    A warning must be printed as the command's own line, without the class that Python's warnings
    show, such as `UserWarning`.
    """
    done = run(script, *arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return done.stdout + done.stderr


def fail(script: str, *arguments: object, cwd: Path | None = None) -> str:
    """Run a command that must fail; return its error, which is the last line."""
    done = run(script, *arguments, cwd=cwd)
    lines = done.stderr.strip().splitlines()
    assert done.returncode == 2, done.stderr
    assert lines[-1].startswith(f"{script}: error: ")
    assert "Traceback" not in done.stderr
    return lines[-1]


def python(*command: str, **environment: str) -> None:
    """Run Python in the repository; a failure shows its output."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=_PYTEST_PATIENCE,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def check_kernels(*arguments: str) -> None:
    """Run pytest on kernels in Triton's interpreter, or on a GPU."""
    if torch.cuda.is_available():
        python("-m", "pytest", *arguments)
    else:
        plugin = ("-p", "tests.interpreted_kernels")
        python("-m", "pytest", *plugin, *arguments, TRITON_INTERPRET="1")


# --- files of commands -----------------------------------------------------------------------


def json_lines(path: Path) -> list[Any]:
    """Return the objects of a file, one a line."""
    return list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))


def weights(run_folder: Path, step: int) -> dict[str, torch.Tensor]:
    """Return the weights of a checkpoint by name."""
    return load_file(run_folder / f"step_{step}" / "model.safetensors")
