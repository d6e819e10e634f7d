"""The comparison with peers, on peers that are small programs."""

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.in_process import exit_status, refusal
from tools.bench import peers
from tools.bench.peer_systems.system import Command, System, last_number

if sys.platform != "linux":
    pytest.skip("processor times are read from /proc", allow_module_level=True)

TRAIN = "walk\tV;PST\twalked\nsing\tV;PST\tsang\n"
DEV = "dream\tV;PST\tdreamt\ndream\tV;PST\tdreamed\nplay\tV;PST\tplayed\n"
# The first dev source gets one of its two gold forms, the other one a form with an unknown symbol.
PREDICTIONS = {"d r e a m": "d r e a m e d", "p l a y": "p l a y <unk> d"}
# Reads sources from the standard input: language, tags and letters.
DECODER = f"for line in open(0): print({PREDICTIONS!r}[line[line.index('PST') + 4:].strip()])"


class Fake(System):
    """A peer that trains for no time, and predicts `PREDICTIONS`."""

    name = "fake"
    distribution = "torch"
    settings = "no settings"
    batch = 10
    training = "print('Step 3 of 4'); print('Step 1,200, weights: 70')"

    def prepare(self) -> list[Command]:
        return []

    def train(self) -> Command:
        return Command([sys.executable, "-c", self.training])

    def updates(self) -> int:
        return last_number(r"Step ([\d,]+)", self.log)

    def parameters(self) -> int:
        return last_number(r"weights: (\d+)", self.log)

    def decode(self, source: Path, output: Path) -> Command:
        return Command([sys.executable, "-c", DECODER], stdin=source, stdout=output)


class Failing(Fake):
    """A peer whose training fails."""

    name = "failing"
    training = "raise ValueError('no such option: epochs')"


class Missing(Fake):
    """A peer that is not installed."""

    name = "missing"
    environment = "nowhere"
    packages = ("missing==1.0", "helper")
    unwanted = ("extra",)


def arguments_of(folder: Path) -> list[str]:
    """Write the tables of the comparison; return its arguments."""
    (folder / "a.trn").write_text(TRAIN, encoding="utf-8")
    (folder / "a.dev").write_text(DEV, encoding="utf-8")
    paths = {"train": "a.trn", "dev": "a.dev", "out": "out", "peers": "", "json": "figures.json"}
    return [word for name, path in paths.items() for word in (f"--{name}", str(folder / path))]


class Comparison(NamedTuple):
    """What the comparison of a working, a failing and a missing peer printed and wrote."""

    printed: str
    errors: str
    figures: dict[str, Any]

    @property
    def result(self) -> dict[str, Any]:
        """The figures of the only peer that works."""
        (result,) = self.figures["results"]
        return dict(result)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("peers")
    arguments = arguments_of(folder)
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(io.StringIO()) as printed,
        redirect_stderr(io.StringIO()) as errors,
    ):
        patch.setattr(peers, "SYSTEMS", (Fake, Failing, Missing))
        assert exit_status(peers.main, arguments) == 0
    figures = json.loads((folder / "figures.json").read_text(encoding="utf-8"))
    return Comparison(printed.getvalue(), errors.getvalue(), figures)


def test_a_peer_has_a_line_with_parameters_and_updates(comparison: Comparison) -> None:
    (line,) = (line for line in comparison.printed.splitlines() if line.startswith("fake "))
    assert line.split()[2:4] == ["70", "1,200"]


def test_the_settings_of_a_peer_are_printed(comparison: Comparison) -> None:
    assert "fake: no settings" in comparison.printed


def test_the_accuracy_is_that_of_the_predictions(comparison: Comparison) -> None:
    """One source has one of its two gold forms, and the other a form with an unknown symbol."""
    assert comparison.result["exact_match"] == 50


def test_the_updates_are_the_last_that_the_log_tells(comparison: Comparison) -> None:
    assert comparison.result["updates"] == 1200


def test_a_peer_has_examples_a_second_of_processor_time(comparison: Comparison) -> None:
    examples = 1200 * Fake.batch
    expected = examples / comparison.result["training"]["processor"]
    assert comparison.result["examples_per_second"] == pytest.approx(expected)


def test_a_peer_that_fails_has_a_reason_of_one_line(comparison: Comparison) -> None:
    reason = comparison.figures["skipped"]["failing"]
    assert "ValueError: no such option: epochs" in reason
    assert "\n" not in reason


def test_a_peer_that_is_not_installed_has_a_command_that_installs_it(
    comparison: Comparison,
) -> None:
    assert comparison.figures["skipped"]["missing"] == (
        "not installed: python3 -m venv PEERS/nowhere && "
        "PEERS/nowhere/bin/pip install missing==1.0 helper && "
        "PEERS/nowhere/bin/pip uninstall -y extra"
    )


def test_the_help_has_a_command_for_each_environment(capsys: pytest.CaptureFixture[str]) -> None:
    """Two systems of yoyodyne share one."""
    with pytest.raises(SystemExit):
        peers.parse_arguments(["--help"])
    installations = [line for line in capsys.readouterr().out.splitlines() if "-m venv" in line]
    environments = [line.split()[3] for line in installations]
    assert environments == ["PEERS/yoyodyne", "PEERS/joeynmt", "PEERS/eole"]


def test_a_missing_peer_is_named_at_once(comparison: Comparison) -> None:
    assert "missing: not installed" in comparison.errors


def test_a_missing_peer_is_named_below_the_table(comparison: Comparison) -> None:
    assert "missing: not installed" in comparison.printed


def test_an_existing_folder_is_kept(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert "exists; name a new folder" in refusal(peers.main, arguments_of(tmp_path))


def test_a_core_that_the_process_may_not_use_is_refused(tmp_path: Path) -> None:
    message = refusal(peers.main, [*arguments_of(tmp_path), "--core", "4000"])
    assert "--core 4000: not allowed here" in message


def test_afterwards_the_process_may_use_all_its_cores_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5})
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, cores: chosen.append(cores))
    with peers.on_one_core(None):
        assert chosen == [{3}]
    assert chosen[1:] == [{3, 5}]
