"""One system of `peers.py`: trained for a time, its predictions scored, its speeds measured."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.report.measures import correct_forms, is_right
from tools.bench.limited_run import TICKS, Used, run
from tools.bench.peer_systems.system import LOG, Command, PeerError, System, text_of


@dataclass(frozen=True)
class Result:
    """A system's line of the table.

    Attributes:
        system: its name.
        version: that is installed.
        parameters: weights of the network.
        updates: that the training made, at least.
        examples_per_second: training pairs by processor seconds.
        exact_match: percent of the sources.
        words_per_second: decoded sources by processor seconds.
        settings: for people.
        training: what it used.
    """

    system: str
    version: str
    parameters: int
    updates: int
    examples_per_second: float
    exact_match: float
    words_per_second: float
    settings: str
    training: Used

    def cells(self) -> list[str]:
        """Return the line as texts."""
        return [
            self.system,
            self.version,
            f"{self.parameters:,}",
            f"{self.updates:,}",
            f"{self.examples_per_second:.0f}",
            f"{self.exact_match:.1f}",
            f"{self.words_per_second:.0f}",
        ]


def checked_run(command: Command, log: Path, seconds: float | None = None) -> Used:
    """Run a command that must end well, or be stopped.

    Raises:
        PeerError: it failed; names the last line of its log.
    """
    used = run(command, log, seconds)
    if used.status and not used.stopped:
        lines = [line for line in text_of(log).splitlines() if line.strip()]
        last = lines[-1].strip() if lines else f"exit status {used.status}"
        raise PeerError(f"failed: {last} ({log})")
    return used


def exact_match(
    sources: Sequence[str], references: Sequence[str], predictions: Sequence[str]
) -> float:
    """Return the percentage of different sources whose prediction is one of their references.

    All are tokens between spaces, of which a string has only one division, so equal tokens are
    equal strings. An unknown symbol is none of a reference's, thus wrong.

    Raises:
        PeerError: there is another number of predictions.
    """
    if len(predictions) != len(sources):
        raise PeerError(f"{len(predictions):,} predictions for {len(sources):,} sources")
    forms = correct_forms(sources, references)
    right = {
        source: any(is_right(form, predicted) for form in forms_of_source)
        for source, forms_of_source, predicted in zip(sources, forms, predictions, strict=True)
    }
    return 100 * sum(right.values()) / len(right)


def version_of(system: System) -> str:
    """Return the version that is installed.

    Raises:
        PeerError: none is.
    """
    code = f"import importlib.metadata as m; print(m.version({system.distribution!r}))"
    done = subprocess.run([system.python, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PeerError(f"not installed: {system.install_command()}")
    return done.stdout.strip()


def measure(system: System, minutes: float) -> Result:
    """Train a system, decode the development set, and score it.

    Raises:
        PeerError: it is not installed, or fails.
    """
    version = version_of(system)
    for number, command in enumerate(system.prepare()):
        checked_run(command, system.folder / f"prepare{number}.log")
    training = checked_run(system.train(), system.folder / LOG, 60 * minutes)
    updates = system.updates()
    start = seconds_to_decode(system, "one")  # nearly all of it is the start
    decoding = max(seconds_to_decode(system, "dev") - start, 1 / TICKS)
    sources = system.data.lines("dev", "src")
    predictions = system.predictions(system.folder / "dev.predicted")
    return Result(
        system=system.name,
        version=version,
        parameters=system.parameters(),
        updates=updates,
        examples_per_second=updates * system.batch / training.processor,
        exact_match=exact_match(sources, system.data.lines("dev", "tgt"), predictions),
        words_per_second=(len(sources) - 1) / decoding,  # the first one is in the start
        settings=system.settings,
        training=training,
    )


def seconds_to_decode(system: System, split: str) -> float:
    """Decode SPLIT.src to SPLIT.predicted; return the seconds of processor time.

    Raises:
        PeerError: it fails.
    """
    output = system.folder / f"{split}.predicted"
    command = system.decode(system.data.path(split, "src"), output)
    return checked_run(command, system.folder / f"{split}.log").processor
