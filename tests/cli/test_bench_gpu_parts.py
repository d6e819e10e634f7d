"""The parts of the benchmark of a GPU run one after another, and an error ends its own part alone.

The parts are small generators of rows, and run on a CPU.
"""

import json
import math
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tools.bench.gpu import Bench
from tools.bench.gpu_device import Device, Result
from tools.bench.gpu_parts import Measure, Part


class Finished(NamedTuple):
    """A benchmark after its parts.

    Attributes:
        failed: whether a check or a part failed, by the benchmark.
        written: the rows in its JSON file.
        shown: the rows of each part, as they were printed.
    """

    failed: bool
    written: list[Result]
    shown: list[Sequence[Result]]


def run_parts(folder: Path, **measures: Measure) -> Finished:
    """Run parts by their names; their results go into a folder."""
    shown: list[Sequence[Result]] = []
    parts = {name: Part("rows", measure, shown.append) for name, measure in measures.items()}
    options = Namespace(quick=True, output=folder / "results.json")
    bench = Bench(options, Device("cpu"), parts)
    bench.run(list(parts))
    written = json.loads(options.output.read_text(encoding="utf-8"))["rows"]
    return Finished(bench.failed, written, shown)


def measure_and_fail() -> Iterator[Result]:
    yield {"ms": 1.0}
    raise RuntimeError("out of memory")


def measure() -> Iterator[Result]:
    yield {"ms": 2.0}


FAILURE = {"what": "first", "error": "RuntimeError('out of memory')", "ok": False}


@pytest.fixture
def with_an_error(tmp_path: Path) -> Finished:
    """A benchmark whose first part raises an error."""
    return run_parts(tmp_path, first=measure_and_fail, second=measure)


def test_an_error_of_a_part_is_a_row_and_the_next_part_runs(with_an_error: Finished) -> None:
    assert with_an_error.written == [{"ms": 1.0}, FAILURE, {"ms": 2.0}]


def test_a_part_prints_its_own_rows_alone(with_an_error: Finished) -> None:
    assert with_an_error.shown == [[{"ms": 1.0}, FAILURE], [{"ms": 2.0}]]


# --- whether it has failed ---


def test_a_benchmark_with_an_error_has_failed(with_an_error: Finished) -> None:
    assert with_an_error.failed


def test_a_benchmark_with_a_wrong_check_has_failed(tmp_path: Path) -> None:
    def check() -> Iterator[Result]:
        yield {"what": "loss", "ok": False}

    assert run_parts(tmp_path, check=check).failed


def test_a_benchmark_without_errors_has_not_failed(tmp_path: Path) -> None:
    assert not run_parts(tmp_path, part=measure).failed


# --- the file ---


def test_a_time_that_is_nan_is_null_in_the_file(tmp_path: Path) -> None:
    def measure_nan() -> Iterator[Result]:
        yield {"ms": math.nan}

    assert run_parts(tmp_path, part=measure_nan).written == [{"ms": None}]
