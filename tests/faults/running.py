"""Run a command in a child with limits and a planned fault, and judge how it ended."""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests import commands, warm

CHILD = Path(__file__).with_name("child.py")
PATIENCE = 30  # seconds that a command may take, on a busy machine


@dataclass(frozen=True)
class Plan:
    """What happens to a child.

    Attributes:
        fault: "full" (the disk is full), or the name of a signal.
        at: number of the event at which that happens, from 1; 0 is never.
        root: only events below this folder count.
        log: file for the events; without it, none is counted.
        memory: bytes that the child may take besides the libraries.
        seconds: processor time that it may take.
        file_size: largest file in bytes; writing more fails, or kills if the fault is SIGKILL.
    """

    fault: str = "full"
    at: int = 0
    root: str = "/"
    log: str | None = None
    memory: int = 3 << 29
    seconds: int = 20
    file_size: int | None = None


@dataclass(frozen=True)
class Ended:
    """How a child ended; its status is None if it had to be killed, and negative after a signal."""

    arguments: tuple[str, ...]
    status: int | None
    stdout: str
    stderr: str
    events: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The last line on the standard error."""
        return self.stderr.strip().split("\n")[-1]

    def bug(self) -> str | None:
        """Say what a user must never see: a traceback, a hang, a crash, or not one clear line."""
        if self.status is None:
            return "hangs"
        if self.status < 0:
            return f"dies by {signal.Signals(-self.status).name}: {self.line:.200}"
        if "Traceback (most recent call last)" in self.stderr:
            return f"traceback: {self.line:.200}"
        if self.status not in (0, 1, 2, 130):
            return f"status {self.status}: {self.line:.200}"
        errors = re.findall(r"^\S.*: error: ", self.stderr, re.MULTILINE)
        if self.status == 2 and len(errors) != 1:
            return f"{len(errors)} error lines with status 2: {self.line:.200}"
        if self.status == 2 and ": error: " not in self.line:
            return f"more than one line of error, the last of them: {self.line:.200}"
        if self.status == 2 and re.search(r"[\x00-\x08\x0b-\x1f\x7f]", self.line):
            return f"control characters in an error line: {self.line[:200]!a}"
        return None


def attempt(
    arguments: Sequence[object], folder: Path, plan: Plan | None = None, stdin: str | bytes = ""
) -> Ended:
    """Run a command of `onmt-entmax` to its end.

    Args:
        arguments: the command line.
        folder: its working directory.
        plan: limits and fault.
        stdin: its standard input.
    """
    plan = plan or Plan()
    texts = [json.dumps(asdict(plan)), *map(str, arguments)]
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryFile() as stderr,
    ):
        given.write(stdin.encode() if isinstance(stdin, str) else stdin)
        given.seek(0)
        files = [given.fileno(), stdout.fileno(), stderr.fileno()]
        environment = {**commands.ENVIRONMENT, "PYTHONIOENCODING": "utf-8"}
        status: int | None
        try:
            server = commands.server()
            status = warm.run(server, str(CHILD), texts, files, str(folder), environment, PATIENCE)
        except TimeoutError:
            status = None
        said = []
        for file in (stdout, stderr):
            file.seek(0)
            said.append(file.read().decode(errors="backslashreplace"))
    events: tuple[str, ...] = ()
    if plan.log is not None and os.path.exists(plan.log):
        events = tuple(Path(plan.log).read_text(encoding="utf-8").splitlines())
        os.unlink(plan.log)
    return Ended(tuple(texts[1:]), status, said[0], said[1], events)
