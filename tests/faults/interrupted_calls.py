"""An attack: a signal ends a call, or its disk is full; then the call is repeated.

Each file that the interrupted call leaves must be the old one or the whole new one, and the
repeated call must write what an undisturbed call writes. This must hold whenever the signal comes:
the times are random, and depend on the machine, so that many moments are tried.
"""

import functools
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
from tests.faults.attacked_calls import RELEASED, RUN, TriedCase, arguments_of, outputs
from tests.faults.interruptions import FullDisk, Interruption, Signal, run_interrupted

Fault = Literal["SIGKILL", "SIGINT", "SIGTERM", "SIGHUP", "full disk"]

# Calls to choose from: a training, which has the most to lose, in half of the cases.
_INTERRUPTED = ["train", "train", "train", "translate", "combine", "export"]
# When a signal comes, as shares of the time that the undisturbed call takes. Before, mostly Python
# starts, and nothing can be lost; at the latest time, most calls have ended.
_EARLIEST, _LATEST = 0.4, 1.1
_SMALLEST_DISK = 100  # bytes that each file may have
_OLD = b"old"  # content of the file `out` before the call


class Undisturbed(NamedTuple):
    """A call that nothing interrupted.

    Attributes:
        outputs: contents of its outputs, by their paths.
        seconds: time that it took, with the start of Python.
    """

    outputs: dict[str, bytes]
    seconds: float


@functools.cache
def undisturbed(world: Path, call: str) -> Undisturbed:
    """Run a call in a process of its own, and time it."""
    folder = world.parent / f"undisturbed-{call}"
    started = time.monotonic()
    folder.mkdir()
    subprocess.run(
        [*CONSOLE, *arguments_of(call, world, Path("."))],
        cwd=folder, env=ENVIRONMENT, check=True, capture_output=True,
    )  # fmt: skip
    return Undisturbed(outputs(folder), time.monotonic() - started)


def draw_interruption(fault: Fault, expected: Undisturbed, random: Random) -> Interruption:
    """Return an interruption at a random time, or with a random size of the disk."""
    if fault == "full disk":
        largest_file = max(map(len, expected.outputs.values()))
        return FullDisk(random.randrange(_SMALLEST_DISK, largest_file))
    share = random.uniform(_EARLIEST, _LATEST)
    return Signal(signal.Signals[fault], share * expected.seconds)


def failure_in_files(
    interruption: Interruption, status: int, folder: Path, expected: Mapping[str, bytes]
) -> str | None:
    """Return what an interrupted call has left that is neither old nor whole; None if nothing.

    Args:
        interruption: what interrupted the call.
        status: the exit status of the call, negative if a signal ended it.
        folder: folder of the outputs.
        expected: the outputs of the undisturbed call.
    """
    for name, content in outputs(folder).items():
        is_of_a_checkpoint = name.startswith(f"{RUN}/")  # compared after the call was repeated
        if content not in (_OLD, expected.get(name)) and not is_of_a_checkpoint:
            return f"left a part of {name}"
    hidden = [path.name for path in folder.rglob(".*") if path.name != ".lock"]
    was_killed = interruption.kills or status < 0
    return f"left {hidden}" if hidden and not was_killed else None


def prepare_repetition(call: str, folder: Path) -> list[str]:
    """Do what a user has to do before a call is repeated; return the arguments that it needs.

    A training continues from its last checkpoint, if it has one. An export refuses a folder that is
    there, so what the interrupted call left of it is deleted.
    """
    if call == "export":
        shutil.rmtree(folder / RELEASED, ignore_errors=True)
    if call == "train" and checkpoint_steps(folder / RUN):
        return ["-train_from", str(folder / RUN)]
    return []


def failure_if_repeated(
    call: str, world: Path, folder: Path, expected: Mapping[str, bytes]
) -> str | None:
    """Repeat an interrupted call; return how its outputs differ from the expected ones.

    Args:
        call: name of the call, a key of `CALLS`.
        world: the folder that the call reads.
        folder: folder of the outputs, with what the interrupted call left.
        expected: the outputs of the undisturbed call.
    """
    more = prepare_repetition(call, folder)
    done = run("onmt_entmax", *arguments_of(call, world, folder), *more)
    if done.returncode != 0:
        return f"called again: {done.stderr[-200:]}"
    contents = outputs(folder)
    different = [name for name, content in expected.items() if contents.get(name) != content]
    return f"called again: another {different}" if different else None


def interrupt(faults: tuple[Fault, ...], world: Path, random: Random, folder: Path) -> TriedCase:
    """Interrupt a random call by one of some faults, and repeat it.

    Args:
        faults: the faults to choose from.
        world: the folder that the calls read.
        random: chooses the call, the fault, and its time or size.
        folder: an empty folder for outputs.
    """
    call = random.choice(_INTERRUPTED)
    fault = random.choice(faults)
    expected = undisturbed(world, call)
    (folder / "out").write_bytes(_OLD)
    interruption = draw_interruption(fault, expected, random)
    done = run_interrupted(arguments_of(call, world, folder), interruption)
    failure = (
        interruption.failure(done)
        or failure_in_files(interruption, done.returncode, folder, expected.outputs)
        or failure_if_repeated(call, world, folder, expected.outputs)
    )
    return TriedCase(f"{call}: {interruption}", failure)
