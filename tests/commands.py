"""Run the commands of the repository, as a user does; files that they read and write."""

import atexit
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from safetensors.torch import load_file

from tests import command_client

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
CONSOLE = [sys.executable, "-m", "onmt_entmax"]

_SERVER = "ONMT_ENTMAX_TEST_SERVER"  # environment variable: FOLDER_OF_THE_SOCKET:PID_OF_THE_OWNER
_PATIENCE = 300  # seconds that a command may take
_PYTEST_PATIENCE = 1200  # seconds that a run of pytest may take, beside others on a busy machine

# --- the server of commands ------------------------------------------------------------------


def offer_server() -> None:
    """Let this process and those it starts share a server of commands; see `tests.command_server`.

    The server begins with the first command, and ends with this process.
    """
    if sys.platform == "linux" and _SERVER not in os.environ:
        folder = tempfile.mkdtemp(prefix="commands-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ[_SERVER] = f"{folder}:{os.getpid()}"


def server_socket() -> str | None:
    """Return the path of the server's socket, and start the server if it is not running.

    None: no server is offered here, and each command is a new process.
    """
    if _SERVER not in os.environ:
        return None
    folder, owner = os.environ[_SERVER].rsplit(":", 1)
    socket = Path(folder) / "socket"
    with FileLock(Path(folder) / "lock"):
        if not socket.exists():
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.command_server", str(socket), owner],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                env=ENVIRONMENT,
                cwd=ROOT,
                start_new_session=True,
            )
            assert process.stdout is not None
            assert process.stdout.readline() == b"listening\n"
            process.stdout.close()
    return str(socket)


def _run_in_fork(
    socket: str, path: str, arguments: Sequence[str], cwd: Path | None
) -> subprocess.CompletedProcess[str]:
    """Let the server run a script; return its exit status and what it printed."""
    with (
        open(os.devnull) as stdin,
        tempfile.TemporaryFile("w+", encoding="utf-8") as stdout,
        tempfile.TemporaryFile("w+", encoding="utf-8") as stderr,
    ):
        files = [stdin.fileno(), stdout.fileno(), stderr.fileno()]
        request = command_client.Request(path, arguments, str(cwd or Path.cwd()), ENVIRONMENT)
        status = command_client.run(socket, request, files, _PATIENCE)
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess([path, *arguments], status, stdout.read(), stderr.read())


# --- commands --------------------------------------------------------------------------------


def run(
    script: str, *arguments: object, cwd: Path | None = None, fresh: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a command of the repository, in a process of its own.

    Args:
        script: its path, from the root of the repository, or `onmt_entmax`: the console command.
        arguments: what follows on the command line.
        cwd: the working directory; this one, if None.
        fresh: start the interpreter anew, rather than fork one that has loaded the libraries.
    """
    path = command_client.CONSOLE if script == command_client.CONSOLE else str(ROOT / script)
    texts = [*map(str, arguments)]
    socket = None if fresh else server_socket()
    if socket is None:
        program = CONSOLE if script == command_client.CONSOLE else [sys.executable, path]
        return execute([*program, *texts], cwd)
    return _run_in_fork(socket, path, texts, cwd)


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
    """Run a command that must succeed without a warning; return what it printed."""
    done = run(script, *arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return done.stdout + done.stderr


def fail(script: str, *arguments: object, cwd: Path | None = None) -> str:
    """Run a command that must fail with one line; return that line."""
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
    interpreted = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    python("-m", "pytest", *arguments, **interpreted)


# --- files of commands -----------------------------------------------------------------------


def json_lines(path: Path) -> list[Any]:
    """Return the objects of a file, one a line."""
    return list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))


def weights(run_folder: Path, step: int) -> dict[str, torch.Tensor]:
    """Return the weights of a checkpoint by name."""
    return load_file(run_folder / f"step_{step}" / "model.safetensors")


def toy_ende(folder: Path) -> None:
    """Write small files under the names of OpenNMT-py's quick start, in the folder `toy-ende`.

    Targets are the capital letters of their sources. There are 300 training pairs and 20 of the
    development set.
    """
    (folder / "toy-ende").mkdir()
    for side, letters in (("src", "abcdefgh"), ("tgt", "ABCDEFGH")):
        generator = random.Random(5)  # both sides draw the same numbers
        for name, size in (("train", 300), ("val", 20)):
            lines = [
                " ".join(generator.choices(letters, k=generator.randint(3, 9))) for _ in range(size)
            ]
            (folder / "toy-ende" / f"{side}-{name}.txt").write_text("\n".join(lines) + "\n")
