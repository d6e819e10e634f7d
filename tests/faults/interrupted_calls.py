"""An attack: a call is ended by a signal, or finds its disk full; then it is made again.

Each file that the interrupted call leaves must be the old one or the whole new one, and the
repeated call must write what an undisturbed call writes.
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
# When a signal comes, as shares of the time that the call takes undisturbed: mostly while it runs
# and not while Python starts, and sometimes when it has ended.
_EARLIEST, _LATEST = 0.4, 1.1
_SMALLEST_DISK = 100  # bytes
_OLD = b"old"  # content of the file `out` before the call


class Undisturbed(NamedTuple):
    """A call that nothing interrupts."""

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
    """Say what an interrupted call has left that is neither old nor whole.

    Args:
        interruption: of the call.
        status: its exit status, negative if a signal ended it.
        folder: of its outputs.
        expected: the outputs of the undisturbed call.
    """
    for name, content in outputs(folder).items():
        is_of_a_checkpoint = name.startswith(f"{RUN}/")  # compared after the call was repeated
        if content not in (_OLD, expected.get(name)) and not is_of_a_checkpoint:
            return f"left a part of {name}"
    hidden = [path.name for path in folder.rglob(".*") if path.name != ".lock"]
    was_killed = interruption.kills or status < 0
    return f"left {hidden}" if hidden and not was_killed else None


def arguments_to_continue(call: str, folder: Path) -> list[str]:
    """Return the arguments with which a training continues from a checkpoint, if it has one."""
    continues = call == "train" and checkpoint_steps(folder / RUN)
    return ["-train_from", str(folder / RUN)] if continues else []


def failure_if_repeated(
    call: str, world: Path, folder: Path, expected: Mapping[str, bytes]
) -> str | None:
    """Repeat an interrupted call; say how its outputs differ from those of an undisturbed one."""
    more = arguments_to_continue(call, folder)
    if call == "export":  # it refuses a folder that is there
        shutil.rmtree(folder / RELEASED, ignore_errors=True)
    done = run("onmt_entmax", *arguments_of(call, world, folder), *more)
    if done.returncode != 0:
        return f"called again: {done.stderr[-200:]}"
    contents = outputs(folder)
    different = [name for name, content in expected.items() if contents.get(name) != content]
    return f"called again: another {different}" if different else None


def interrupt(faults: tuple[Fault, ...], world: Path, random: Random, folder: Path) -> TriedCase:
    """Interrupt a random call by one of some faults, and make it again."""
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
