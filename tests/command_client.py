"""The client of the server of commands, which `tests.command_server` describes.

A command that starts other commands starts this client in their place:

    python tests/command_client.py SOCKET SCRIPT ...

It lets the server run the script. It imports only the standard library, so that it starts quickly.
"""

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

CONSOLE = "onmt_entmax"  # as a script: the console command


class Request(NamedTuple):
    """A script to run, and its surroundings."""

    script: str
    """The path of a Python script, or `CONSOLE`."""
    arguments: Sequence[str]
    """The rest of the command line."""
    cwd: str
    environment: Mapping[str, str]


def run(server: str, request: Request, files: Sequence[int], timeout: float | None = None) -> int:
    """Run a script by the server; return its exit status.

    Args:
        server: the path of the server's socket.
        request: the script.
        files: file descriptors of its standard input, output and error.
        timeout: seconds after which the script is killed.

    Raises:
        TimeoutError: the script was killed.
        ConnectionError: the server has died.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout)
        connection.connect(server)
        send_request(connection, request, files)
        status = connection.recv(16)
    if not status:
        raise ConnectionError(f"the server of {server} has died")
    return int(status)


def send_request(connection: socket.socket, request: Request, files: Sequence[int]) -> None:
    """Send the server a request and the three file descriptors."""
    socket.send_fds(connection, [b"!"], list(files))  # descriptors are sent with a byte at least
    connection.sendall(json.dumps(request._asdict()).encode() + b"\n")


def console_command(server: str) -> tuple[str, ...]:
    """Return the beginning of a command line that runs the console command by the server."""
    # -S and -E: without site-packages and Python's environment variables, the client starts sooner.
    return (sys.executable, "-S", "-E", __file__, server, CONSOLE)


def main() -> int:
    """Run the script of the command line with this process's files, folder and environment."""
    server, script, *arguments = sys.argv[1:]
    return run(server, Request(script, arguments, os.getcwd(), dict(os.environ)), (0, 1, 2))


if __name__ == "__main__":
    sys.exit(main())
