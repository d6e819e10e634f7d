"""Run a command of `onmt-entmax` in this process, with limits and a fault at one of its events.

    python tests/faults/child.py PLAN COMMAND ...

PLAN is JSON: the fields of `tests.faults.running.Plan`. An event is a file that is opened for
writing, written, renamed, removed or flushed to disk, a folder that is made or removed, or a text
that is printed. Python's audit hooks report most of them; `open`, `os.write` and `os.fsync` are
replaced. What a fault interrupts while it writes has written half.
"""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

PLANT = "ONMT_ENTMAX_PLANTED"  # environment variable: name of a defect of `tests.faults.planted`
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Audit event of Python to name of the event here, and where its path stands in the arguments.
CHANGES = {
    "os.mkdir": ("mkdir", 0),
    "os.rename": ("rename", 1),
    "os.link": ("link", 1),
    "os.remove": ("remove", 0),
    "os.rmdir": ("rmdir", 0),
    "os.truncate": ("truncate", 0),
}
FILLING = ("open", "write", "mkdir", "rename", "link", "fsync")  # what a full disk can refuse


class Faults:
    """Counts the events of a process, and lets something happen at one of them."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.root = os.path.realpath(plan["root"]) + os.sep
        self.log = os.open(plan["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        self.write = os.write
        self.count = 0
        self.busy = False

    def below(self, path: str) -> bool:
        """Whether events of a file count."""
        return path.startswith(self.root)

    def happen(self, kind: str, path: str, half: Callable[[], Any] | None = None) -> None:
        """Note an event; at the planned one, kill or signal this process, or refuse to write.

        Args:
            kind: of the event.
            path: of the file; empty for a standard stream.
            half: does half of the work before the fault.
        """
        if self.busy or (path and not self.below(path)):
            return
        fault = self.plan["fault"]
        if fault == "full" and kind not in FILLING:
            return
        self.busy = True  # the lines below raise events too
        try:
            line = f"{kind} {path.removeprefix(self.root)}\n"
            self.write(self.log, line.encode(errors="replace"))
            self.count += 1
            if self.count != self.plan["at"]:
                return
            if half is not None and fault in ("full", "SIGKILL"):
                half()
            if fault == "full":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            os.kill(os.getpid(), getattr(signal, fault))
        finally:
            self.busy = False

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Be an audit hook: note what changes files below the root."""
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITING and not isinstance(path, int):
                self.happen("open", _absolute(path, -1))
        elif event in CHANGES:
            kind, place = CHANGES[event]
            folder = arguments[-1] if event in ("os.remove", "os.rmdir", "os.rename") else -1
            self.happen(kind, _absolute(arguments[place], folder))

    def replace_functions(self) -> None:
        """Note what no audit hook reports: writing, flushing to disk, printing."""
        fsync, write, opened = os.fsync, os.write, io.open
        faults = self

        class Heard(io.FileIO):
            def write(self, data: Any) -> int:
                half = memoryview(data).cast("B")[: len(data) // 2]
                faults.happen("write", self.path, lambda: super(Heard, self).write(half))
                return super().write(data)

        def heard_fsync(file: Any) -> None:
            faults.happen("fsync", _opened(file if isinstance(file, int) else file.fileno()))
            fsync(file)

        def heard_write(file: int, data: Any) -> int:
            faults.happen("write", _opened(file), lambda: write(file, data[: len(data) // 2]))
            return write(file, data)

        def heard_open(
            file: Any,
            mode: str = "r",
            buffering: int = -1,
            encoding: str | None = None,
            errors: str | None = None,
            newline: str | None = None,
            closefd: bool = True,
            opener: Any = None,
        ) -> Any:
            path = _opened(file) if isinstance(file, int) else _absolute(file, -1)
            if not set(mode) & set("wax+") or not faults.below(path):
                return opened(file, mode, buffering, encoding, errors, newline, closefd, opener)
            raw = Heard(file, mode.replace("t", "").replace("b", ""), closefd, opener)
            raw.path = path
            if buffering == 0:
                return raw
            buffer = (io.BufferedRandom if "+" in mode else io.BufferedWriter)(raw)
            if "b" in mode:
                return buffer
            return io.TextIOWrapper(buffer, encoding, errors, newline, buffering == 1)

        os.fsync, os.write = heard_fsync, heard_write
        io.open = builtins.open = heard_open
        Said.faults = self
        for name in ("stdout", "stderr"):
            errors = "backslashreplace" if name == "stderr" else "strict"
            stream = Said(getattr(sys, name).detach(), "utf-8", errors, line_buffering=True)
            setattr(sys, name, stream)


class Said(io.TextIOWrapper):
    """A standard stream that notes each text printed to it."""

    faults: Faults

    def write(self, text: str) -> int:
        """Print a text."""
        self.faults.happen("say", "")
        return super().write(text)


def _opened(file: int) -> str:
    """Return the path of an open file."""
    return os.readlink(f"/proc/self/fd/{file}")


def _absolute(path: Any, folder: int) -> str:
    """Return the path of a file; a relative one is in an open folder, or the working directory."""
    text = os.fsdecode(path)
    if not text.startswith("/"):
        base = _opened(folder) if folder >= 0 else os.getcwd()
        text = os.path.join(base, text)
    return os.path.normpath(text)


def _refuse_network(event: str, arguments: tuple[Any, ...]) -> None:
    """Be an audit hook that refuses connections to other machines, and to this one by name."""
    if event == "socket.getaddrinfo":
        raise socket.gaierror(socket.EAI_FAIL, "no network in these tests")
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


def _limit(plan: dict[str, Any]) -> None:
    """Bound time, memory and the size of files of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    bounds = {
        resource.RLIMIT_AS: now + plan["memory"],
        resource.RLIMIT_CPU: plan["seconds"],
        resource.RLIMIT_CORE: 0,
    }
    if plan["file_size"] is not None:
        bounds[resource.RLIMIT_FSIZE] = plan["file_size"]
        if plan["fault"] == "SIGKILL":  # die in the middle of writing; else writing fails
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    for what, value in bounds.items():
        resource.setrlimit(what, (value, resource.getrlimit(what)[1]))


def main() -> None:
    """Read the plan, prepare the fault, and be the command."""
    plan = json.loads(sys.argv[1])
    sys.argv = ["onmt-entmax", *sys.argv[2:]]
    from onmt_entmax.cli.main import main as command

    # Whoever started the server may ignore signals, as nohup does.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    if PLANT in os.environ:
        from tests.faults.planted import PLANTED

        PLANTED[os.environ[PLANT]]()
    sys.addaudithook(_refuse_network)
    if plan["log"] is not None:
        faults = Faults(plan)
        faults.replace_functions()
        sys.addaudithook(faults.hear)
    _limit(plan)
    sys.exit(command())


if __name__ == "__main__":
    main()
