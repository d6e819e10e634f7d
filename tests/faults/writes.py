"""Kills, signals and full disks at every write of every command.

A case names a command and one of its events (see `tests.faults.child`). Whatever happens there,
each output is afterwards whole, as before, or absent, and the same command, or a resumed training,
comes to the same end as one that nothing has disturbed.
"""

from __future__ import annotations

import json
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

from onmt_entmax.checkpoint import checkpoint_steps
from tests.faults.attack import Attack, once
from tests.faults.running import Ended, Plan, attempt
from tests.faults.world import CALLS, World, existing, must

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
# What differs between two undisturbed calls: times, and the digest of a file that names the folder.
VARIES = re.compile(
    r'("(?:[a-z_]*seconds|[a-z_]*per_second|input_percent|[a-z_]*memory[a-z_]*)": )[-+.\de]+'
    r'|("train\.yaml": )"\w+"'
)
OLD = "what was there before\n"
SMALLEST = 4096  # limit of a file's size, below which no error message could be read


@dataclass(frozen=True)
class Case:
    """A fault of a call: at an event, or in the middle of a file that grows beyond a size."""

    call: str
    fault: str
    at: int = 0
    size: int | None = None
    again: bool = False  # whether the outputs exist before
    event: str = ""

    def __str__(self) -> str:
        where = f"event {self.at} ({self.event})" if self.size is None else f"{self.size} bytes"
        return f"{self.call}: {self.fault} at {where}{', outputs exist' if self.again else ''}"


@dataclass(frozen=True)
class Undisturbed:
    """What a call does that nothing disturbs: its outputs, and its events by fault."""

    outputs: dict[str, bytes]
    events: dict[str, tuple[str, ...]]


def writing_calls() -> list[str]:
    """Return the names of the calls that write."""
    # `fetch` accepts only the real files of the shared task, which no test has.
    names = [name for name in existing() if name != "fetch"]
    return [name for name in names if "{o}" in CALLS[name][2]]


@once
def undisturbed(world: World, call: str) -> Undisturbed:
    """Run a call to its end."""
    events = {}
    for fault in ("full", "SIGKILL"):
        place = world.folder.parent / "undisturbed" / f"{call} {fault}"
        place.mkdir(parents=True)
        events[fault] = must(_run(world, call, place, Plan(fault, log=f"{place}.log"))).events
    return Undisturbed(outputs(place), events)


def outputs(place: Path) -> dict[str, bytes]:
    """Return the content of the files below a folder, without times and the folder's own name.

    Hidden files and logs are left out.
    """
    found = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if not path.is_file() or "/." in f"/{name}" or path.suffix in (".log", ".yaml"):
            continue
        if name.endswith(("log.txt", "SHA256SUMS", "state.pt", "matrix.yaml")):
            continue
        content = path.read_bytes().replace(str(place).encode(), b"PLACE")
        if path.suffix in (".json", ".jsonl", ".html"):
            content = VARIES.sub(r"\1\2 0", content.decode()).encode()
        found[name] = content
    return found


def hidden(place: Path) -> list[str]:
    """Return the leftovers below a folder; locks are none."""
    names = [path for path in place.rglob(".*") if path.name != ".lock"]
    return [str(path.relative_to(place)) for path in names]


def _run(world: World, call: str, place: Path, plan: Plan, resume: bool = False) -> Ended:
    arguments = world.call(call, place)
    if resume and call == "train" and checkpoint_steps(place / "run"):
        arguments += ["-train_from", f"{place}/run"]
    root = Plan(**{**vars(plan), "root": str(place)})
    return attempt(arguments, place, root, stdin=world.stdin(call))


def check(world: World, case: Case, place: Path) -> str | None:
    """Disturb a call, look at what it leaves, and call it again."""
    good = undisturbed(world, case.call).outputs
    if case.again:
        for name in good:
            if "/" not in name:  # a folder that exists is another matter: commands refuse it
                (place / name).write_text(OLD)
    log = None if case.size is not None else f"{place}.log"
    ended = _run(world, case.call, place, Plan(case.fault, case.at, "", log, file_size=case.size))
    reached = case.size is not None or len(ended.events) >= case.at
    wrong = _ending(case, ended) if reached else ended.bug()
    if wrong is None and ended.status == 0 and (differ := _different(outputs(place), good)):
        wrong = f"status 0, but another {', '.join(differ)}"
    return wrong or _left(case, ended, place, good) or _repeated(world, case, place, good)


def _ending(case: Case, ended: Ended) -> str | None:
    """Say what is wrong with the status and the messages of a disturbed call."""
    if case.fault == "SIGKILL":
        if ended.status is None:
            return "hangs"
        return None if ended.status <= 0 else f"not killed, but {ended.status}: {ended.line}"
    if case.fault == "full":
        if ended.status in (0, 2) and "enforce fail" in ended.stderr:
            return f"a message of PyTorch: {ended.line}"
        if ended.status == 2 and "/" not in ended.line and "standard" not in ended.line:
            return f"names no file: {ended.line}"
        return ended.bug()
    number = int(signal.Signals[case.fault])
    if ended.status not in (0, 128 + number, -number):
        return f"status {ended.status} after {case.fault}: {ended.line}"
    if "Traceback" in ended.stderr:
        return f"traceback after {case.fault}: {ended.line}"
    # A training that is at its last update saves it.
    name = r"rename .*/step_\d+" if case.call == "train" else "rename .*"
    more = [event for event in ended.events[case.at :] if re.fullmatch(name, event)]
    if ended.status == 0 and len(more) > (case.call == "train"):
        return f"goes on after {case.fault}: {more[-1]}"
    return None


def _left(case: Case, ended: Ended, place: Path, good: dict[str, bytes]) -> str | None:
    """Say what is wrong with the files that a disturbed call leaves."""
    if case.call in ("train", "experiment"):  # their checks are to resume
        pass
    else:
        for name, content in outputs(place).items():
            if name not in good:
                return f"left {name}, which an undisturbed call does not write"
            if content != good[name] and content != OLD.encode():
                return f"left a part of {name}"
            if content == OLD.encode() and not case.again:
                return f"left {name} as it never was"
        if case.again:
            for name in good:
                if "/" not in name and not (place / name).exists():
                    return f"lost the earlier {name}"
    rest = hidden(place)
    if rest and case.fault != "SIGKILL" and ended.status is not None and ended.status >= 0:
        return f"left {', '.join(rest[:3])}"
    stopped = re.search(r"(?:stopped|finished) at step (\d+)", ended.stderr)
    step = int(stopped[1]) if stopped and case.call == "train" else 0
    if step > 0 and step not in checkpoint_steps(place / "run"):
        return f"stopped at step {step}, which is not saved"
    return None


def _repeated(world: World, case: Case, place: Path, good: dict[str, bytes]) -> str | None:
    """Say what is wrong with the same call, made again without a fault."""
    for _ in range(60):
        ended = _run(world, case.call, place, Plan(), resume=True)
        if not ended.stderr.count("another process") or ended.status == 0:
            break
        time.sleep(0.5)  # an experiment's orphan ends its work
    refused = ended.status == 2 and "exists already" in ended.line  # by import-onmt: it is whole
    if ended.bug() or (ended.status != 0 and not refused):
        return f"called again: {ended.bug() or ended.line}"
    if differ := _different(outputs(place), good):
        return f"called again: another {', '.join(differ[:3])}"
    if case.call in ("train", "experiment") and hidden(place):
        return f"called again: {', '.join(hidden(place)[:3])} is still there"
    return None


def _different(after: dict[str, bytes], good: dict[str, bytes]) -> list[str]:
    """Return the names of the files that are not as they should be.

    A resumed training averages its loss since its start, so only its validations are compared.
    """

    def validations(text: bytes) -> list[tuple[object, object]]:
        rows = map(json.loads, text.decode().splitlines())
        return [(row["step"], row.get("loss")) for row in rows if row.get("kind") == "valid"]

    return [
        name
        for name in sorted(good)
        if name not in after
        or (
            validations(after[name]) != validations(good[name])
            if name.endswith("metrics.jsonl")
            else after[name] != good[name]
        )
    ]


def _draw(world: World, generator: Random, faults: tuple[str, ...]) -> Case:
    """Draw a call, most often a training, and one of its events."""
    fault = generator.choice(faults)
    kind = "full" if fault == "full" else "SIGKILL"
    call = generator.choice([*writing_calls(), *["train"] * 4])
    again = generator.random() < 0.5 and call not in ("train", "experiment")
    if fault in SIGNALS or generator.random() < 0.85:
        events = undisturbed(world, call).events[kind]
        at = generator.randint(1, len(events))
        return Case(call, fault, at, None, again, events[at - 1])
    largest = max(map(len, undisturbed(world, call).outputs.values()))
    size = generator.randint(SMALLEST, max(largest, SMALLEST + 1))
    return Case(call, fault, 0, size, again)


KILLS = Attack("kills", lambda world, g: _draw(world, g, ("SIGKILL",)), check)
SIGNALLED = Attack("signals", lambda world, g: _draw(world, g, SIGNALS), check)
DISK = Attack("disk", lambda world, g: _draw(world, g, ("full",)), check)
