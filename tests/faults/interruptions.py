"""Interruptions: a signal ends a call, or its disk is full; then the same call is made again."""

import functools
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

from onmt_entmax.checkpoint import checkpoint_steps
from tests.commands import CONSOLE, ENVIRONMENT, run
from tests.faults.attacked_calls import CALLS, RELEASED, RUN, Outcome, bug, outputs, words

Fault = Literal["SIGKILL", "SIGINT", "SIGTERM", "SIGHUP", "full disk"]

# Calls to choose from: a training, which has the most to lose, in half of the cases.
_INTERRUPTED = ["train", "train", "train", "translate", "combine", "export"]
_LONGEST = 60  # seconds of a call, also after a signal


class Undisturbed(NamedTuple):
    """What a call gives if nothing happens."""

    outputs: dict[str, bytes]
    seconds: float


@functools.cache
def undisturbed(world: Path, call: str) -> Undisturbed:
    """Run a call in a process of its own, and time it."""
    folder = world.parent / f"undisturbed-{call}"
    started = time.monotonic()
    folder.mkdir()
    subprocess.run(
        [*CONSOLE, *words(CALLS[call], world, Path("."))],
        cwd=folder, env=ENVIRONMENT, check=True, capture_output=True,
    )  # fmt: skip
    return Undisturbed(outputs(folder), time.monotonic() - started)


class Signal(NamedTuple):
    """A signal, and when it comes."""

    number: signal.Signals
    seconds: float
    """Since the start of the call."""

    def __str__(self) -> str:
        return f"{self.number.name} at {self.seconds:.2f}"


class FullDisk(NamedTuple):
    """A disk with too little room."""

    limit: int
    """Bytes that each file can have."""

    def __str__(self) -> str:
        return f"full disk after {self.limit} bytes"

    def restrict_process(self) -> None:
        """Let no file of this process grow beyond the limit."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.limit, self.limit))


Interruption = Signal | FullDisk


def run_interrupted(
    call: str, interruption: Interruption, world: Path, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a call that a signal ends, or that finds its disk full."""
    with subprocess.Popen(
        [*CONSOLE, *words(CALLS[call], world, folder)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
        preexec_fn=interruption.restrict_process if isinstance(interruption, FullDisk) else None,
    ) as process:  # fmt: skip
        try:
            printed = _end(process, interruption)
        finally:
            process.kill()  # without effect on one that has ended
    return subprocess.CompletedProcess([], process.returncode, *printed)


def _end(process: subprocess.Popen[str], interruption: Interruption) -> tuple[str, str]:
    """Wait until a process ends, or end it by its signal; return what it printed.

    A call that hangs on a full disk is killed, as its status then says.
    """
    if isinstance(interruption, FullDisk):
        interruption = Signal(signal.SIGKILL, _LONGEST)
    try:
        return process.communicate(timeout=interruption.seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(interruption.number)
        return process.communicate(timeout=_LONGEST)


def failure_at_end(
    interruption: Interruption, done: subprocess.CompletedProcess[str]
) -> str | None:
    """Say how an interrupted call ended that should not end so."""
    if isinstance(interruption, FullDisk):
        return bug(done)
    number = interruption.number
    if done.returncode not in (0, -number, 128 + number) or "Traceback" in done.stderr:
        return f"status {done.returncode}: {done.stderr[-200:]}"
    return None


def failure_in_files(
    interruption: Interruption, status: int, folder: Path, expected: Mapping[str, bytes]
) -> str | None:
    """Say what an interrupted call has left that is neither old nor whole.

    Args:
        interruption: of the call.
        status: its exit status, negative if a signal ended it.
        folder: of its outputs, with `old` in the file `out` before.
        expected: the outputs of the undisturbed call.
    """
    for name, content in outputs(folder).items():
        is_of_a_checkpoint = name.startswith(f"{RUN}/")  # compared after the call was repeated
        if content not in (b"old", expected.get(name)) and not is_of_a_checkpoint:
            return f"left a part of {name}"
    hidden = [path.name for path in folder.rglob(".*") if path.name != ".lock"]
    sent_kill = isinstance(interruption, Signal) and interruption.number == signal.SIGKILL
    was_killed = sent_kill or status < 0
    return f"left {hidden}" if hidden and not was_killed else None


def arguments_to_continue(call: str, folder: Path) -> list[str]:
    """Return the arguments with which a training continues from a checkpoint, if it has one."""
    continues = call == "train" and checkpoint_steps(folder / RUN)
    return ["-train_from", str(folder / RUN)] if continues else []


def failure_if_repeated(
    call: str, world: Path, folder: Path, expected: Mapping[str, bytes]
) -> str | None:
    """Make an interrupted call again; say what is not as if it had never been interrupted."""
    more = arguments_to_continue(call, folder)
    if call == "export":  # it refuses a folder that is there
        shutil.rmtree(folder / RELEASED, ignore_errors=True)
    done = run("onmt_entmax", *words(CALLS[call], world, folder), *more)
    if done.returncode != 0:
        return f"called again: {done.stderr[-200:]}"
    contents = outputs(folder)
    different = [name for name, content in expected.items() if contents.get(name) != content]
    return f"called again: another {different}" if different else None


def interrupt(faults: tuple[Fault, ...], world: Path, random: Random, folder: Path) -> Outcome:
    """Let a process be ended or its disk be full, and make the same call again."""
    call = random.choice(_INTERRUPTED)
    fault = random.choice(faults)
    expected, duration = undisturbed(world, call)
    (folder / "out").write_text("old")
    interruption: Interruption
    if fault == "full disk":
        interruption = FullDisk(random.randrange(100, max(map(len, expected.values()))))
    else:  # mostly while it runs, sometimes when it has ended
        interruption = Signal(signal.Signals[fault], random.uniform(0.4, 1.1) * duration)
    done = run_interrupted(call, interruption, world, folder)
    failure = (
        failure_at_end(interruption, done)
        or failure_in_files(interruption, done.returncode, folder, expected)
        or failure_if_repeated(call, world, folder, expected)
    )
    return Outcome(f"{call}: {interruption}", failure)
