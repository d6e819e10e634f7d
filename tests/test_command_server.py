"""The server of commands survives clients that leave, and kills their commands."""

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_client import Request, run, send_request
from tests.commands import ENVIRONMENT, ROOT, started

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="commands are forked on Linux")

# A server without the libraries of commands, which take seconds to load. Its forks run scripts.
SERVER = """
import os, runpy, sys
from tests.command_server import Server
server = Server(sys.argv[1], int(sys.argv[2]))
print("listening", flush=True)
request = server.serve()
if request is not None:
    runpy.run_path(request.script)
"""
EXIT_WITH_3 = "import sys; sys.exit(3)"
# Writes its process number, and ends with its standard input.
WAIT = "import os; print(os.getpid(), flush=True); input()"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server that listens at `socket`."""
    command = [sys.executable, "-c", SERVER, tmp_path / "socket", os.getpid()]
    with started(command, stdout=subprocess.PIPE, cwd=ROOT, env=ENVIRONMENT) as process:
        assert process.stdout.readline() == b"listening\n"
        yield process


@pytest.fixture
def connection(tmp_path: Path, server: subprocess.Popen[bytes]) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(tmp_path / "socket"))
        yield connection


def request_of(folder: Path, code: str) -> Request:
    """Write a script; return the request to run it."""
    script = folder / "script.py"
    script.write_text(code)
    return Request(str(script), [], str(folder), {})


def assert_serves(folder: Path) -> None:
    """Fail unless the server returns the exit status of a command."""
    assert run(str(folder / "socket"), request_of(folder, EXIT_WITH_3), (0, 1, 2), 60) == 3


class WaitingCommand:
    """A command that ends when its standard input is closed.

    Args:
        connection: the connection of its client.
        request: request to run a script with the code `WAIT`.

    Attributes:
        process: a pidfd of its process.
    """

    def __init__(self, connection: socket.socket, request: Request) -> None:
        reading, self._input = os.pipe()
        output, writing = os.pipe()
        send_request(connection, request, (reading, writing, 2))
        self.process = os.pidfd_open(int(os.read(output, 16)))
        for file in (reading, output, writing):
            os.close(file)

    def close_input(self) -> None:
        os.close(self._input)

    def wait(self) -> None:
        """Wait for the end of the process."""
        ready, _, _ = select.select([self.process], [], [], 60)
        assert ready
        os.close(self.process)


@pytest.fixture
def command(tmp_path: Path, connection: socket.socket) -> WaitingCommand:
    return WaitingCommand(connection, request_of(tmp_path, WAIT))


@pytest.mark.usefixtures("server")
def test_a_client_gets_the_exit_status(tmp_path: Path) -> None:
    assert_serves(tmp_path)


def test_a_command_is_killed_if_its_client_leaves(
    connection: socket.socket, command: WaitingCommand
) -> None:
    connection.close()
    command.wait()
    command.close_input()


def test_the_server_survives_a_client_that_leaves_before_its_request(
    tmp_path: Path, connection: socket.socket
) -> None:
    connection.close()
    assert_serves(tmp_path)


def test_the_server_survives_a_client_that_leaves_as_its_command_ends(
    tmp_path: Path,
    server: subprocess.Popen[bytes],
    connection: socket.socket,
    command: WaitingCommand,
) -> None:
    """The server is stopped meanwhile, and so learns of both at once."""
    server.send_signal(signal.SIGSTOP)
    os.waitpid(server.pid, os.WUNTRACED)
    command.close_input()
    command.wait()
    connection.close()
    server.send_signal(signal.SIGCONT)
    assert_serves(tmp_path)
