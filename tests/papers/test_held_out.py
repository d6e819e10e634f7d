"""`tools.papers.tables test`: a test set is measured once, and what was measured is recorded."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.in_process import exit_status, refusal, success
from tests.papers.matrices import write_matrix
from tools.papers import held_out, tables
from tools.papers.commands import Stopped
from tools.papers.job_runner import Runner
from tools.papers.matrix import Job

NAMES = ["one seed 1", "one seed 2", "one ensemble"]


class Decoder:
    """Writes the reference in place of decoding.

    Attributes:
        decoded: names of the trainings and ensembles, in order.
        stops_after: how many are decoded before a signal comes; None: no signal comes.
    """

    def __init__(self) -> None:
        self.decoded: list[str] = []
        self.stops_after: int | None = None

    def decode(self, runner: Runner, job: Job) -> None:
        if len(self.decoded) == self.stops_after:
            raise Stopped
        self.decoded.append(job.name)
        shutil.copy(job.matrix.reference, job.output)


@pytest.fixture
def decoder(monkeypatch: pytest.MonkeyPatch) -> Decoder:
    """Decode by a `Decoder` in place of the command."""
    decoder = Decoder()
    monkeypatch.setattr(Runner, "decode", lambda *arguments: decoder.decode(*arguments))
    return decoder


@pytest.fixture
def matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A matrix with a test set, whose runs are finished, with an accuracy of 50 % on dev data.

    On the test set the accuracy is 100 %, since `Decoder` writes the reference.
    """
    monkeypatch.setattr(held_out, "figures_of", lambda job: {"accuracy": 50.0})
    path = write_matrix(tmp_path)
    for side in ("src", "tgt"):
        shutil.copy(tmp_path / f"valid.{side}", tmp_path / f"test.{side}")
    for name in ("seed-1", "seed-2", "ensemble"):
        (tmp_path / "runs" / "one" / name).mkdir(parents=True)
    return path


def record_path(matrix: Path) -> Path:
    """Return the file that records what was measured."""
    return matrix.parent / "runs" / "test.json"


def record_of(matrix: Path) -> dict[str, Any]:
    """Return what was measured."""
    content: dict[str, Any] = json.loads(record_path(matrix).read_text())
    return content


def names_of(matrix: Path) -> list[str]:
    """Return the names of what was measured, in order."""
    return [entry["name"] for entry in record_of(matrix)["measurements"]]


def measure(matrix: Path, *options: str) -> str:
    """Measure a matrix on its test set; return what the command prints."""
    return success(tables.main, ["test", matrix, *options])


def test_every_training_and_ensemble_is_measured(matrix: Path, decoder: Decoder) -> None:
    measure(matrix)
    assert names_of(matrix) == decoder.decoded == NAMES


def test_the_test_set_is_what_is_measured(matrix: Path, decoder: Decoder) -> None:
    measure(matrix)
    options = record_of(matrix)["measurements"][0]["measured"]["translate"]
    assert options["src"] == str(matrix.with_name("test.src"))


def test_a_figure_does_not_depend_on_the_order_of_keys_in_the_record(
    matrix: Path, decoder: Decoder
) -> None:
    """Another program may have sorted them."""
    measure(matrix)
    record_path(matrix).write_text(json.dumps(record_of(matrix), sort_keys=True))
    first, *_ = measure(matrix).splitlines()
    assert first.split()[:5] == "one seed 1 accuracy 100.00".split()


def test_a_second_call_measures_nothing_again(matrix: Path, decoder: Decoder) -> None:
    measure(matrix)
    measure(matrix)
    assert decoder.decoded == NAMES


def test_with_again_a_second_call_measures_all_once_more(matrix: Path, decoder: Decoder) -> None:
    measure(matrix)
    measure(matrix, "--again")
    assert names_of(matrix) == decoder.decoded == 2 * NAMES


def test_again_continues_a_measurement_that_was_stopped(matrix: Path, decoder: Decoder) -> None:
    measure(matrix)
    decoder.stops_after = len(NAMES) + 1
    assert exit_status(tables.main, ["test", str(matrix), "--again"]) == 2
    decoder.stops_after = None
    measure(matrix, "--again")
    assert names_of(matrix) == decoder.decoded == 2 * NAMES


def test_again_begins_anew_after_a_complete_measurement(matrix: Path, decoder: Decoder) -> None:
    measure(matrix, "--again")
    measure(matrix, "--again")
    assert names_of(matrix) == 2 * NAMES


def test_figures_of_another_decoding_are_refused(matrix: Path, decoder: Decoder) -> None:
    measure(matrix)
    record = record_of(matrix)
    record["measurements"][0]["measured"]["translate"]["beam_size"] = 1
    record_path(matrix).write_text(json.dumps(record))
    line = refusal(tables.main, ["test", matrix])
    assert "one seed 1 was measured on" in line


def test_figures_of_another_text_are_refused(matrix: Path, decoder: Decoder) -> None:
    measure(matrix)
    with open(matrix.with_name("test.tgt"), "a") as file:
        file.write("a\n")
    line = refusal(tables.main, ["test", matrix])
    assert "with other weights, texts or options; --again measures once more" in line


def test_runs_may_be_elsewhere_than_when_they_were_measured(matrix: Path, decoder: Decoder) -> None:
    """If the folder has moved, files and options are the same, though paths are not."""
    measure(matrix)
    record = json.dumps(record_of(matrix)).replace(str(matrix.parent), "/elsewhere")
    record_path(matrix).write_text(record)
    measure(matrix)
    assert decoder.decoded == NAMES


def test_a_test_set_in_a_folder_beside_comes_first(matrix: Path, decoder: Decoder) -> None:
    (matrix.parent / "test").mkdir()
    for side in ("src", "tgt"):
        shutil.copy(matrix.with_name(f"test.{side}"), matrix.parent / "test")
    measure(matrix)
    options = record_of(matrix)["measurements"][0]["measured"]["translate"]
    assert options["src"] == str(matrix.parent / "test" / "test.src")


def test_a_missing_test_set_is_named(matrix: Path) -> None:
    matrix.with_name("test.tgt").unlink()
    assert "test.src and" in refusal(tables.main, ["test", matrix])
