"""The benchmark of attention runs on a CPU with `--quick`."""

import json
import sys
from typing import Any

import pytest

from tests.commands import ROOT, execute
from tools.bench.attention import OURS


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The results of the command: a table for each of the two small shapes."""
    output = tmp_path_factory.mktemp("attention") / "results.json"
    command = ["-m", "tools.bench.attention", "--quick", "--output", str(output)]
    done = execute([sys.executable, *command], ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    tables: list[dict[str, Any]] = json.loads(output.read_text())["attention"]
    return tables


def test_both_shapes_time_our_mappings_first(tables: list[dict[str, Any]]) -> None:
    """Other implementations may follow."""
    names = [list(table["milliseconds"]) for table in tables]
    assert [contenders[: len(OURS)] for contenders in names] == [[*OURS], [*OURS]]


def test_every_contender_has_a_time(tables: list[dict[str, Any]]) -> None:
    """One that fails has the reason in its place."""
    times = [time for table in tables for time in table["milliseconds"].values()]
    assert all(isinstance(time, float) and time > 0 for time in times)
