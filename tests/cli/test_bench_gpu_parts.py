"""The parts of the benchmark of a GPU: chosen by name, each failing for itself alone."""

import json
import math
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from tools.bench.gpu import Bench, chosen_parts
from tools.bench.gpu_device import Device, Result
from tools.bench.gpu_parts import Part

NAMES = ["checks-loss", "checks-updates", "steps-1", "losses"]


def test_a_part_is_chosen_by_its_name() -> None:
    assert chosen_parts("losses,steps-1", NAMES) == ["steps-1", "losses"]


def test_a_group_has_all_its_parts() -> None:
    assert chosen_parts("checks", NAMES) == ["checks-loss", "checks-updates"]


def test_by_default_all_parts_are_chosen() -> None:
    assert chosen_parts(None, NAMES) == NAMES


def test_an_unknown_part_is_refused_beside_a_known_one() -> None:
    with pytest.raises(UserError, match="no such part: lossses; there are checks-loss, "):
        chosen_parts("steps-1,lossses", NAMES)


class Parts:
    """Two parts, of which the first fails after a row.

    Attributes:
        shown: the rows of each part, as they were printed.
    """

    def __init__(self) -> None:
        self.shown: list[Sequence[Result]] = []
        self.by_name = {
            "first": Part("rows", self._measure_and_fail, self.shown.append),
            "second": Part("rows", self._measure, self.shown.append),
        }

    def _measure_and_fail(self) -> Iterator[Result]:
        yield {"ms": 1.0}
        raise RuntimeError("out of memory")

    def _measure(self) -> Iterator[Result]:
        yield {"ms": 2.0}


FAILURE = {"what": "first", "error": "RuntimeError('out of memory')", "ok": False}


@pytest.fixture
def parts() -> Parts:
    return Parts()


@pytest.fixture
def bench(parts: Parts, tmp_path: Path) -> Bench:
    """The benchmark, after both parts."""
    options = Namespace(quick=True, output=tmp_path / "results.json")
    bench = Bench(options, Device("cpu"), parts.by_name)
    bench.run(["first", "second"])
    return bench


def test_an_error_of_a_part_is_a_row_and_the_next_part_runs(bench: Bench, tmp_path: Path) -> None:
    written = json.loads((tmp_path / "results.json").read_text())
    assert written["rows"] == [{"ms": 1.0}, FAILURE, {"ms": 2.0}]


@pytest.mark.usefixtures("bench")
def test_a_part_prints_its_own_rows_alone(parts: Parts) -> None:
    assert parts.shown == [[{"ms": 1.0}, FAILURE], [{"ms": 2.0}]]


def test_a_benchmark_with_an_error_has_failed(bench: Bench) -> None:
    assert bench.failed


def test_a_time_that_is_nan_is_null_in_the_file(tmp_path: Path) -> None:
    part = Part("rows", lambda: iter([{"ms": math.nan}]), lambda rows: None)
    options = Namespace(quick=True, output=tmp_path / "results.json")
    Bench(options, Device("cpu"), {"part": part}).run(["part"])
    assert '"ms": null' in (tmp_path / "results.json").read_text()
