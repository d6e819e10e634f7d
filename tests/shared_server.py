"""Start the server of commands that all processes of a run of pytest share, and use it.

`tests.command_server` is the server itself, and says why there is one.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from filelock import FileLock

from tests import command_client

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}

_SERVER = "ONMT_ENTMAX_TEST_SERVER"  # environment variable: FOLDER_OF_THE_SOCKET:PID_OF_THE_OWNER


def offer_server() -> None:
    """Let this process and those that it starts share a server of commands.

    The first command starts the server, which ends with this process.
    """
    if sys.platform == "linux" and _SERVER not in os.environ:
        folder = tempfile.mkdtemp(prefix="commands-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ[_SERVER] = f"{folder}:{os.getpid()}"


def server_socket() -> str | None:
    """Return the path of the server's socket; start the server if it is not running.

    None: no server is offered, so each command has to be a new process.
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


def run_in_fork(
    socket: str,
    path: str,
    arguments: Sequence[str],
    cwd: Path,
    timeout: float,
    environment: Mapping[str, str] = ENVIRONMENT,
) -> subprocess.CompletedProcess[str]:
    """Let the server run a script; return its exit status and what it printed.

    Args:
        socket: the path of the server's socket.
        path: path of the script, or `command_client.CONSOLE`.
        arguments: what follows it on the command line.
        cwd: the working directory.
        timeout: seconds that it may take.
        environment: its environment variables.
    """
    with (
        open(os.devnull) as stdin,
        tempfile.TemporaryFile("w+", encoding="utf-8") as stdout,
        tempfile.TemporaryFile("w+", encoding="utf-8") as stderr,
    ):
        files = [stdin.fileno(), stdout.fileno(), stderr.fileno()]
        request = command_client.Request(path, arguments, str(cwd), environment)
        status = command_client.run(socket, request, files, timeout)
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess([path, *arguments], status, stdout.read(), stderr.read())
