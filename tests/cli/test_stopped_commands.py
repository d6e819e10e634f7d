"""`audit` and `distill`, which run other commands: after a signal, the same command continues."""

import json
import signal
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.processes import PATIENCE, running, wait_for_line, wait_until
from tests.commands import CONSOLE, execute
from tests.inflection_models import write_model

pytestmark = pytest.mark.slow


class Stopped(NamedTuple):
    """A command that a signal ended."""

    status: int
    errors: str
    processes_left: list[int]
    """Processes that still work in the folder of its training."""


class StoppedAudit(NamedTuple):
    """An audit that the same signal ended twice, in the training of its first part."""

    number: signal.Signals
    model: Path
    """The run folder of the training."""
    states: list[Path]
    """The states that the training had saved between both signals."""
    first: Stopped
    second: Stopped


def processes_with(path: Path) -> list[int]:
    """Return the processes that have a path on their command line."""
    numbers = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = file.read_bytes().decode(errors="replace")
        except OSError:  # the process has ended meanwhile
            continue
        if str(path) in command:
            numbers.append(int(file.parent.name))
    return numbers


def stop_in_training(command: list[str], model: Path, number: signal.Signals) -> Stopped:
    """Run a command, send it a signal when its training has logged something, and wait."""
    log = model / "metrics.jsonl"
    size_before = log.stat().st_size if log.exists() else 0
    with running(*command) as process:

        def has_trained() -> bool:
            assert process.poll() is None, process.communicate()
            return log.exists() and log.stat().st_size > size_before

        wait_until(has_trained)
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE)  # until the training has ended too
        return Stopped(process.returncode, errors, processes_with(model.parent))


@pytest.fixture(
    scope="module", params=[signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name
)
def audit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> StoppedAudit:
    """An audit that is stopped, called again and stopped again."""
    if sys.platform != "linux":
        pytest.skip("finds processes through /proc")
    number: signal.Signals = request.param
    folder = tmp_path_factory.mktemp("audit")
    rows = [f"{a}{b}{c}\t{a}{b}{c}d\tV" for a in "abc" for b in "abc" for c in "abc"]
    (folder / "table").write_text("".join(f"{row}\n" for row in rows))
    command = [*CONSOLE, "audit", str(folder / "table"), "--out", str(folder / "out")]
    command += ["--folds", "2", "--updates", "100000"]  # more than it has time for
    model = folder / "out" / "part-1" / "model"
    first = stop_in_training(command, model, number)
    states = list(model.glob("step_*/training/state.pt"))
    second = stop_in_training(command, model, number)
    return StoppedAudit(number, model, states, first, second)


def test_an_audit_ends_by_the_signal(audit: StoppedAudit) -> None:
    expected = -audit.number if audit.number == signal.SIGKILL else 128 + audit.number
    assert (audit.first.status, audit.second.status) == (expected, expected)


def test_no_process_of_a_stopped_audit_is_left(audit: StoppedAudit) -> None:
    assert (audit.first.processes_left, audit.second.processes_left) == ([], [])


def test_a_stopped_audit_saves_the_state_of_its_training(audit: StoppedAudit) -> None:
    """SIGKILL ends the audit alone; its training saves and ends when it notices that."""
    assert "stopped at step" in audit.first.errors
    assert len(audit.states) == 1


def test_a_stopped_audit_continues_its_training(audit: StoppedAudit) -> None:
    (state,) = audit.states
    assert f"continuing from {state.parent.parent}" in audit.second.errors


class StoppedDistillation(NamedTuple):
    """A distillation that SIGTERM ended in its first translation."""

    folder: Path
    command: list[str]
    status: int


@pytest.fixture(scope="module")
def distillation(tmp_path_factory: pytest.TempPathFactory) -> StoppedDistillation:
    """A distillation that is stopped as soon as it has started its translation."""
    folder = tmp_path_factory.mktemp("distillation")
    (folder / "train.src").write_text("lang=english +V +PST a b\nlang=english +V b\n")
    write_model(folder / "model", 1)
    words = ["--train", "train.src", "--models", "model", "--each", "1", "--prob", "0.01"]
    command = [*CONSOLE, "distill", *words, "--out", "new"]
    with running(*command, cwd=folder) as process:
        wait_for_line(process, "$ onmt-entmax translate")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        return StoppedDistillation(folder, command, process.returncode)


def test_a_distillation_ends_by_the_signal(distillation: StoppedDistillation) -> None:
    assert distillation.status == 128 + signal.SIGTERM


def test_a_stopped_distillation_has_a_record(distillation: StoppedDistillation) -> None:
    record = json.loads((distillation.folder / "new.work" / "distill.json").read_text())
    assert record["seed"] == 1


def test_a_stopped_distillation_continues(distillation: StoppedDistillation) -> None:
    assert execute(distillation.command, distillation.folder).returncode == 0
    assert (distillation.folder / "new.src").exists()
