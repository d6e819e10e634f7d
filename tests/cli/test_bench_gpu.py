"""The benchmark of a GPU also runs on a CPU, with `--quick`."""

import json
import sys
from typing import Any

import pytest

from tests.commands import ROOT, execute

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of the command, a list of rows for each of its parts."""
    output = tmp_path_factory.mktemp("gpu") / "results.json"
    command = ["-m", "tools.bench.gpu", "--quick", "--device", "cpu", "--output", str(output)]
    done = execute([sys.executable, *command], ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    results: dict[str, Any] = json.loads(output.read_text())
    return results


@pytest.mark.parametrize("part", ["loss", "updates", "graphs"])
def test_every_check_holds(results: dict[str, Any], part: str) -> None:
    checks = results[f"{part} checks"]
    assert checks
    assert [check for check in checks if not check["ok"]] == []


def test_steps_of_stock_packed_and_plain_contenders_are_timed(results: dict[str, Any]) -> None:
    contenders = [row["contender"] for row in results["steps"]]
    assert contenders[:3] == ["stock softmax", "packed 1.5", "plain 1.5"]


def test_attention_is_timed(results: dict[str, Any]) -> None:
    assert results["attention"]
    for row in results["attention"]:
        assert list(row["milliseconds"])[:5] == ["softmax", "1.5", "learned", "1.33", "2"]
        assert row["failures"] == {}


def test_decoded_outputs_are_those_of_the_cpu(results: dict[str, Any]) -> None:
    decoding = results["decoding"][0]
    assert decoding["compared"] > 5
    assert decoding["cases"] == []  # of different outputs


def test_losses_are_timed(results: dict[str, Any]) -> None:
    assert results["losses"][0]["bisection 1.5"] > 0


def test_mappings_are_timed(results: dict[str, Any]) -> None:
    assert results["mappings"][0]["bisection 1.5"] > 0


def test_encoders_are_timed(results: dict[str, Any]) -> None:
    assert results["encoder"][0]["loop"] > 0
