"""Measure one system of `peers.py`: train it for a time, decode with it, and score the predictions.

All times are seconds of processor time, and all speeds are per such second.
"""

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
    """The measurements of a system, also as the fields of the JSON file of `peers.py`.

    Attributes:
        system: its name in the table.
        version: version of the installed package.
        parameters: number of weights of the network.
        updates: updates of the training; the log may miss the last few.
        examples_per_second: training pairs per second of the whole training.
        exact_match: percentage of the sources with a correct prediction.
        words_per_second: decoded sources per second, without the start of the program.
        settings: network and training in one line, as text.
        training: time that the training took, and how it ended.
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


def measure(system: System, minutes: float) -> Result:
    """Train a system, decode the development set, and score it.

    Args:
        system: a system whose commands have not run yet.
        minutes: processor time of the training, after which it is stopped.

    Raises:
        PeerError: it is not installed, or fails.
    """
    version = installed_version(system)
    for number, command in enumerate(system.prepare()):
        checked_run(command, system.folder / f"prepare{number}.log")
    training = checked_run(system.train(), system.folder / LOG, 60 * minutes)
    updates = system.updates()
    start = decoding_seconds(system, "one")  # nearly all of it is the start of the program
    # A difference of nothing counts as the shortest time that the system can measure.
    decoding = max(decoding_seconds(system, "dev") - start, 1 / TICKS)
    sources = system.data.lines("dev", "src")
    predictions = system.predictions(system.folder / "dev.predicted")
    return Result(
        system=system.name,
        version=version,
        parameters=system.parameters(),
        updates=updates,
        examples_per_second=updates * system.batch / training.processor,
        exact_match=exact_match(sources, system.data.lines("dev", "tgt"), predictions),
        words_per_second=(len(sources) - 1) / decoding,  # `start` has decoded the first one
        settings=system.settings,
        training=training,
    )


def installed_version(system: System) -> str:
    """Return the version of the package that is installed in the environment of a system.

    Raises:
        PeerError: it is not installed.
    """
    code = f"import importlib.metadata as m; print(m.version({system.distribution!r}))"
    done = subprocess.run([system.python, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PeerError(f"not installed: {system.install_command()}")
    return done.stdout.strip()


def checked_run(command: Command, log: Path, seconds: float | None = None) -> Used:
    """Run a command, and refuse one that fails before its time is over.

    Args:
        command: the command.
        log: file for what it prints.
        seconds: processor time after which it is stopped; None: it runs to its end.

    Raises:
        PeerError: the command failed; the message has the last line of the log.
    """
    used = run(command, log, seconds)
    if used.status and not used.stopped:
        lines = [line for line in text_of(log).splitlines() if line.strip()]
        last = lines[-1].strip() if lines else f"exit status {used.status}"
        raise PeerError(f"failed: {last} ({log})")
    return used


def decoding_seconds(system: System, split: str) -> float:
    """Decode SPLIT.src to SPLIT.predicted, and return the processor time in seconds.

    Raises:
        PeerError: decoding fails.
    """
    output = system.folder / f"{split}.predicted"
    command = system.decode(system.data.path(split, "src"), output)
    return checked_run(command, system.folder / f"{split}.log").processor


def exact_match(
    sources: Sequence[str], references: Sequence[str], predictions: Sequence[str]
) -> float:
    """Return the percentage of different sources whose prediction is one of their references.

    `prepare table` divides equal strings into equal tokens, so comparing tokens is comparing
    strings. A prediction with `<unk>` is wrong.

    Args:
        sources: tokens between spaces; a source with several references has a line for each.
        references: tokens between spaces, for each line of the sources.
        predictions: tokens between spaces, for each line of the sources.

    Raises:
        PeerError: there are more or fewer predictions than sources.
    """
    if len(predictions) != len(sources):
        raise PeerError(f"{len(predictions):,} predictions for {len(sources):,} sources")
    forms = correct_forms(sources, references)
    right = {
        source: any(is_right(form, prediction) for form in forms_of_source)
        for source, forms_of_source, prediction in zip(sources, forms, predictions, strict=True)
    }
    return 100 * sum(right.values()) / len(right)
