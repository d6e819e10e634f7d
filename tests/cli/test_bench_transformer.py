"""The benchmark of a Transformer's training steps."""

import io
from contextlib import redirect_stdout
from typing import Any, NamedTuple

import pytest

from tests.commands import json_lines
from tests.in_process import exit_status
from tools.bench import transformer


class Run(NamedTuple):
    """The results of the tiny size without dropout, and the printed text."""

    results: list[dict[str, Any]]
    printed: str


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    output = tmp_path_factory.mktemp("transformer") / "results.jsonl"
    arguments = f"--size tiny --batch 8 --warmup 1 --steps 3 --dropout 0 --output {output}"
    with redirect_stdout(io.StringIO()) as printed:
        assert exit_status(transformer.main, arguments.split()) == 0
    return Run(json_lines(output), printed.getvalue())


def test_there_is_a_result_of_every_contender(run: Run) -> None:
    contenders = [result["contender"] for result in run.results]
    assert contenders == ["softmax", "1.5", "learned", "stock"]


def test_every_contender_is_timed(run: Run) -> None:
    assert min(result["ms"] for result in run.results) > 0


def test_softmax_and_the_stock_modules_have_the_same_loss(run: Run) -> None:
    """Their weights and batches are the same, too."""
    losses = {result["contender"]: result["loss"] for result in run.results}
    assert losses["stock"] == pytest.approx(losses["softmax"], abs=2e-3)


def test_the_times_are_printed(run: Run) -> None:
    assert "contender learned ms " in run.printed
