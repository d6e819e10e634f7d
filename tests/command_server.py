"""A server that runs the repository's commands in forks of a process with its libraries loaded.

Each command gets a process of its own, as from a shell, but need not load PyTorch and OpenNMT-py,
which takes seconds. One server serves all workers of a run of pytest, and ends with it.

    python -m tests.command_server SOCKET OWNER      (`tests.commands.run` starts it)

A command is one connection to the socket:

    `tests.command_client`                           `Server`
    the descriptors of stdin, stdout and stderr  ->
    a `Request`, as one line of JSON             ->  forks; `tests.forked_command` runs the script
    waits                                            waits for all processes that it has forked
                                                 <-  the exit status, in digits
    closes the connection

If a client closes its connection earlier, as after a timeout, its command is killed.
"""

import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from tests.command_client import Request


class Command(NamedTuple):
    """A process that runs a command, and the connection on which its client waits."""

    pid: int
    connection: socket.socket


class Server:
    """Forks a process for each connection, and sends its exit status there.

    Args:
        path: path of the socket to create.
        owner: the number of the process with which the server ends.

    Attributes:
        owner: a pidfd of that process: a descriptor that can be read when the process has ended.
        commands: the running commands, by the pidfds of their processes.
    """

    def __init__(self, path: str, owner: int) -> None:
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(path)
        self.listening.listen(64)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listening, selectors.EVENT_READ)
        self.owner = os.pidfd_open(owner)
        self.selector.register(self.owner, selectors.EVENT_READ)
        self.commands: dict[int, Command] = {}

    def serve(self) -> Request | None:
        """Serve until the owner ends; return None then.

        It also returns in each forked process, with the request that this process is to run.
        """
        while True:
            # One event at a time: handling it may close what later events of the list are about.
            key, _ = self.selector.select()[0]
            if key.fileobj is self.listening:
                request = self._accept()
                if request is not None:
                    return request
            elif key.fd == self.owner:
                for command in self.commands.values():
                    _kill(command.pid)
                return None
            elif key.fd in self.commands:
                self._send_status(key.fd)
            else:  # a client has closed its connection before its command has ended
                self.selector.unregister(key.fileobj)
                _kill(key.data)

    def _accept(self) -> Request | None:
        """Fork for a client; return its request in the new process, and None in the server."""
        connection, _ = self.listening.accept()
        _, files, _, _ = socket.recv_fds(connection, 1, 3)
        line = connection.makefile("rb").readline()
        if not line.endswith(b"\n"):  # the client was killed before it had sent its request
            _close_all(files)
            connection.close()
            return None
        pid = os.fork()
        if pid == 0:
            for number, file in enumerate(files):
                os.dup2(file, number)
            _close_all(files)
            connection.close()
            self._close()
            os.setsid()  # so that the command can be killed with all processes that it starts
            return Request(**json.loads(line))
        _close_all(files)
        process = os.pidfd_open(pid)
        self.commands[process] = Command(pid, connection)
        self.selector.register(process, selectors.EVENT_READ)
        self.selector.register(connection, selectors.EVENT_READ, data=pid)
        return None

    def _close(self) -> None:
        """Close the server's descriptors in a forked process."""
        self.listening.close()
        _close_all(self.commands)
        for command in self.commands.values():
            command.connection.close()
        self.selector.close()
        os.close(self.owner)

    def _send_status(self, process: int) -> None:
        """Send the exit status of a process that has ended, if its client still waits."""
        pid, connection = self.commands.pop(process)
        self.selector.unregister(process)
        os.close(process)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if connection in self.selector.get_map():
            self.selector.unregister(connection)
            with suppress(ConnectionError):  # the client may have closed it just now
                connection.sendall(str(status).encode())
        connection.close()


def _close_all(files: Iterable[int]) -> None:
    for file in files:
        os.close(file)


def _kill(pid: int) -> None:
    """Kill a command and the processes that it has started."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)  # it has not called setsid yet


def main() -> None:
    """Start the server; in each forked process, run the script of its request."""
    path, owner = sys.argv[1:]
    server = Server(path, int(owner))
    print("listening", flush=True)
    # The process that started the server reads no further, and closes its end of the pipe.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    # These imports take seconds. Clients can already connect, and wait.
    from tests import forked_command

    forked_command.load_libraries()
    request = server.serve()
    if request is not None:
        forked_command.run(request, path)


if __name__ == "__main__":
    main()
