"""The benchmark of training steps of recurrent models."""

import json
import sys
from typing import Any

import pytest

from tests.commands import ROOT, execute
from tools.bench.recurrence import all_conditions, parse_arguments
from tools.bench.texts import INFLECTION

pytestmark = pytest.mark.slow

SUPPORT = 9  # tokens with a probability, on average


@pytest.fixture(scope="module")
def results() -> dict[str, dict[str, Any]]:
    """The results of the command by contender, without the random numbers of dropout."""
    options = "--batch 8 --steps 1 --dropout 0 --variants 1.5,1,1:bf16 --warmup 2"
    command = [sys.executable, "-m", "tools.bench.recurrence", *options.split()]
    command += ["--support", str(SUPPORT)]
    done = execute(command, ROOT)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["contender"]: line for line in lines}


def test_there_is_a_result_of_every_contender(results: dict[str, dict[str, Any]]) -> None:
    assert list(results) == ["stock", "1.5", "1", "1:bf16"]


@pytest.mark.parametrize("measure", ["ms", "GF"], ids=["time", "operations a second"])
def test_every_contender_is_measured(results: dict[str, dict[str, Any]], measure: str) -> None:
    assert min(result[measure] for result in results.values()) > 0


def test_softmax_and_the_stock_model_have_the_same_loss(
    results: dict[str, dict[str, Any]],
) -> None:
    """Their weights and batches are the same, too."""
    assert results["1"]["loss"] == pytest.approx(results["stock"]["loss"], abs=2e-3)


def test_rounded_products_have_nearly_the_same_loss(results: dict[str, dict[str, Any]]) -> None:
    assert results["1:bf16"]["loss"] == pytest.approx(results["stock"]["loss"], rel=0.02)


def test_softmax_has_the_whole_vocabulary_as_its_support(
    results: dict[str, dict[str, Any]],
) -> None:
    assert results["1"]["support"] == INFLECTION.vocabulary


def test_entmax_has_a_small_support(results: dict[str, dict[str, Any]]) -> None:
    """Its weights were scaled to this support on one batch; others have about the same."""
    assert results["1.5"]["support"] == pytest.approx(SUPPORT, rel=0.5)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(["--size", "pilot"], "samples", id="characters"),
        pytest.param(["--size", "words"], "random", id="words"),
        pytest.param(["--size", "words", "--data", "corpora"], "real", id="words of corpora"),
    ],
)
def test_results_say_which_text_was_used(arguments: list[str], text: str) -> None:
    assert all_conditions(parse_arguments(arguments))["text"] == text
