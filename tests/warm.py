"""A server that runs the repository's commands in forks of a process with its libraries loaded.

Each command gets a process of its own, as from a shell, but not the seconds in which PyTorch and
OpenNMT-py load. One server serves all workers of a run of pytest, and ends with it.

    python -m tests.warm serve SOCKET OWNER     what `tests.command_server` starts
    python tests/warm.py SOCKET SCRIPT ...      runs a script there; for commands that run commands

A command is one connection to the socket:

    client (`run`)                                   server (`Server`)
    the descriptors of stdin, stdout and stderr  ->
    a `Request`, as one line of JSON             ->  forks; the new process becomes the command
    waits                                            waits for the end of any process it has forked
                                                 <-  the exit status, in digits
    closes the connection

A client that closes its connection earlier, as after a timeout, has its command killed.
"""

import atexit
import json
import os
import random
import selectors
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

CONSOLE = "onmt_entmax"  # as a script: the console command

# What the commands import when they need it.
LIBRARIES = (
    "matplotlib.pyplot",
    "numpy",
    "onmt_entmax.opennmt",
    "sacrebleu.metrics",
    "safetensors.torch",
    "torch.distributed",
    "torch.utils.tensorboard",
    "yaml",
)


class Request(NamedTuple):
    """What a process is to run."""

    script: str
    """The path of a Python script, or `CONSOLE`."""
    arguments: Sequence[str]
    """What follows it on the command line."""
    cwd: str
    environment: Mapping[str, str]


# --- the client ------------------------------------------------------------------------------


def run(
    server: str,
    script: str,
    arguments: Sequence[str],
    files: Sequence[int],
    cwd: str,
    environment: Mapping[str, str],
    timeout: float | None = None,
) -> int:
    """Run a script in a fork of the server; return its exit status.

    Args:
        server: the path of the server's socket.
        script: the path of a Python script, or `CONSOLE`.
        arguments: what follows it on the command line.
        files: file descriptors of its standard input, output and error.
        cwd: its working directory.
        environment: its environment variables.
        timeout: seconds after which it is killed.

    Raises:
        TimeoutError: it was.
        ConnectionError: the server has died.
    """
    request = Request(script, list(arguments), cwd, dict(environment))
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout)
        connection.connect(server)
        socket.send_fds(connection, [b"!"], list(files))  # descriptors need a byte to go with
        connection.sendall(json.dumps(request._asdict()).encode() + b"\n")
        status = connection.recv(16)
    if not status:
        raise ConnectionError(f"the server of {server} has died")
    return int(status)


# --- the server ------------------------------------------------------------------------------


class Command(NamedTuple):
    """A process that runs a command, and the connection on which its client waits."""

    pid: int
    connection: socket.socket


class Server:
    """Forks a process for each connection, and sends its exit status there.

    Args:
        path: of the socket, which is created.
        owner: the process with which the server ends.

    Attributes:
        owner: a descriptor of that process, which can be read when it has ended.
        running: the commands, by such descriptors of their processes.
    """

    def __init__(self, path: str, owner: int) -> None:
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(path)
        self.listening.listen(64)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listening, selectors.EVENT_READ)
        self.owner = os.pidfd_open(owner)
        self.selector.register(self.owner, selectors.EVENT_READ)
        self.running: dict[int, Command] = {}

    def serve(self) -> Request | None:
        """Serve until the owner ends; return None then.

        It returns in each forked process, too: with the request that this process is to run.
        """
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.listening:
                    request = self._accept()
                    if request is not None:
                        return request
                elif key.fd == self.owner:
                    for command in self.running.values():
                        _kill(command.pid)
                    return None
                elif key.fd in self.running:
                    self._send_status(key.fd)
                else:  # a connection: its client has gone, or waits no longer
                    self.selector.unregister(key.fileobj)
                    _kill(key.data)

    def _accept(self) -> Request | None:
        """Fork for a client; return its request in the new process, and None in the server."""
        connection, _ = self.listening.accept()
        _, files, _, _ = socket.recv_fds(connection, 1, 3)
        request = Request(**json.loads(connection.makefile("rb").readline()))
        pid = os.fork()
        if pid == 0:
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            connection.close()
            self._close()
            os.setsid()  # so that the command can be killed with all processes it starts
            return request
        for file in files:
            os.close(file)
        process = os.pidfd_open(pid)
        self.running[process] = Command(pid, connection)
        self.selector.register(process, selectors.EVENT_READ)
        self.selector.register(connection, selectors.EVENT_READ, data=pid)
        return None

    def _close(self) -> None:
        """Close all that a forked process has of the server's."""
        self.listening.close()
        for process, command in self.running.items():
            os.close(process)
            command.connection.close()
        self.selector.close()
        os.close(self.owner)

    def _send_status(self, process: int) -> None:
        """Tell the client of a process that has ended, unless it has gone."""
        pid, connection = self.running.pop(process)
        self.selector.unregister(process)
        os.close(process)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if connection in self.selector.get_map():
            self.selector.unregister(connection)
            connection.sendall(str(status).encode())
        connection.close()


def _kill(pid: int) -> None:
    """Kill a command and the processes that it has started."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)  # it has not called setsid yet


def _load() -> None:
    """Import what the commands import, and leave one thread: forks have no others."""
    import pkgutil
    from contextlib import suppress
    from importlib import import_module

    import onmt_entmax.cli as commands

    modules = pkgutil.walk_packages(commands.__path__, f"{commands.__name__}.")
    for name in (*LIBRARIES, *(module.name for module in modules)):
        with suppress(ImportError):  # then the command that needs it says so
            import_module(name)
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"{threads} threads in a process that is to be forked"


# --- a forked process ------------------------------------------------------------------------


def _become(request: Request, server: str) -> NoReturn:
    """Run a script in this process, a fork of the server, as the interpreter would."""
    import runpy

    import numpy

    from onmt_entmax.cli import ending

    random.seed()
    numpy.random.seed()
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update(request.environment)
    sys.argv = [request.script, *request.arguments]
    # Commands that this one starts are run by the same server.
    ending.CONSOLE = (sys.executable, "-S", "-E", __file__, server, CONSOLE)
    try:
        if request.script == CONSOLE:
            runpy.run_module(CONSOLE, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(request.script, run_name="__main__")
        _exit(0)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        _exit(end.code if isinstance(end.code, int) else int(end.code is not None))
    except BaseException:
        traceback.print_exc()
        _exit(1)


def _exit(status: int) -> NoReturn:
    """End as the interpreter does, but leave it to the system to free memory."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        status = 120  # the interpreter's own, where it cannot flush
    sys.stderr.flush()
    os._exit(status & 0xFF)


def main() -> None:
    """Be the server, a fork of it that runs a script, or the client."""
    if sys.argv[1] != "serve":
        server, script, *arguments = sys.argv[1:]
        sys.exit(run(server, script, arguments, (0, 1, 2), os.getcwd(), os.environ))
    path, owner = sys.argv[2:]
    listener = Server(path, int(owner))
    print("listening", flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _load()
    import gc

    # What is loaded stays: no fork looks through it, which would copy its memory.
    gc.collect()
    gc.freeze()
    request = listener.serve()
    if request is not None:
        _become(request, path)


if __name__ == "__main__":
    main()
