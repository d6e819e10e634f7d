"""Running the commands of the repository, as a user does."""

import atexit
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from safetensors.torch import load_file

from tests import warm

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
CONSOLE = [sys.executable, "-m", "onmt_entmax"]

_SERVER = "ONMT_ENTMAX_TEST_SERVER"  # environment variable: the folder of the server's socket
_PATIENCE = 300  # seconds that a command may take


def offer_server() -> None:
    """Let this process and those it starts share a server of commands; see `tests.warm`.

    The server begins with the first command, and ends with this process.
    """
    if sys.platform == "linux" and _SERVER not in os.environ:
        folder = tempfile.mkdtemp(prefix="commands-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ[_SERVER] = f"{folder}:{os.getpid()}"


def server() -> str | None:
    """Return the path of the server's socket, and start the server if it is not running.

    None: no server is offered here, and each command is a new process.
    """
    if _SERVER not in os.environ:
        return None
    folder, owner = os.environ[_SERVER].rsplit(":", 1)
    path = Path(folder) / "socket"
    with FileLock(Path(folder) / "lock"):
        if not path.exists():
            server = subprocess.Popen(
                [sys.executable, "-m", "tests.warm", "serve", str(path), owner],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                env=ENVIRONMENT,
                cwd=ROOT,
                start_new_session=True,
            )
            assert server.stdout is not None
            assert server.stdout.readline() == b"listening\n"
            server.stdout.close()
    return str(path)


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
    path = warm.CONSOLE if script == warm.CONSOLE else str(ROOT / script)
    texts = [*map(str, arguments)]
    path_of_server = None if fresh else server()
    if path_of_server is None:
        start = CONSOLE if script == warm.CONSOLE else [sys.executable, path]
        return execute([*start, *texts], cwd)
    return _forked(path_of_server, path, texts, cwd)


def execute(command: Sequence[str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in a new process."""
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=ENVIRONMENT, timeout=_PATIENCE
    )


def _forked(
    server: str, path: str, arguments: Sequence[str], cwd: Path | None
) -> subprocess.CompletedProcess[str]:
    with (
        open(os.devnull) as stdin,
        tempfile.TemporaryFile("w+", encoding="utf-8") as stdout,
        tempfile.TemporaryFile("w+", encoding="utf-8") as stderr,
    ):
        files = [stdin.fileno(), stdout.fileno(), stderr.fileno()]
        where = str(cwd or Path.cwd())
        status = warm.run(server, path, arguments, files, where, ENVIRONMENT, _PATIENCE)
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess([path, *arguments], status, stdout.read(), stderr.read())


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
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def check_kernels(*arguments: str) -> None:
    """Run pytest on kernels in Triton's interpreter, or on a GPU."""
    interpreted = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    python("-m", "pytest", *arguments, **interpreted)


def json_lines(path: Path) -> list[Any]:
    """Return the objects of a file, one a line."""
    return list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))


def weights(run_folder: Path, step: int) -> dict[str, torch.Tensor]:
    """Return the weights of a checkpoint."""
    return load_file(run_folder / f"step_{step}" / "model.safetensors")


def toy_ende(folder: Path) -> None:
    """Write small files under the names of OpenNMT-py's quick start, in the folder `toy-ende`.

    Targets are the capital letters of their sources.
    """
    generator = random.Random(5)
    (folder / "toy-ende").mkdir()
    for side, letters in (("src", "abcdefgh"), ("tgt", "ABCDEFGH")):
        generator.seed(5)
        for name, size in (("train", 300), ("val", 20)):
            lines = [
                " ".join(generator.choices(letters, k=generator.randint(3, 9))) for _ in range(size)
            ]
            (folder / "toy-ende" / f"{side}-{name}.txt").write_text("\n".join(lines) + "\n")
