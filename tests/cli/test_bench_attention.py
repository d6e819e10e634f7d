"""The benchmark of attention runs on a CPU with `--quick`."""

import json
from typing import Any

import pytest

from onmt_entmax.errors import UserError
from tests.commands import run
from tools.bench.attention import parse_arguments, warm_up

# PyTorch's attention and ours, on a CPU.
ALWAYS_TIMED = ["softmax", "1.5", "learned", "1.33", "2"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The results of the command: a table for each of the two small shapes."""
    output = tmp_path_factory.mktemp("attention") / "results.json"
    done = run("tools/bench/attention.py", "--quick", "--output", output)
    assert done.returncode == 0, done.stdout + done.stderr
    tables: list[dict[str, Any]] = json.loads(output.read_text())["attention"]
    return tables


def test_both_shapes_time_pytorch_and_ours_first(tables: list[dict[str, Any]]) -> None:
    """Implementations of other projects may follow."""
    names = [list(table["milliseconds"]) for table in tables]
    assert [contenders[:5] for contenders in names] == [ALWAYS_TIMED, ALWAYS_TIMED]


def test_every_time_is_positive(tables: list[dict[str, Any]]) -> None:
    times = [time for table in tables for time in table["milliseconds"].values()]
    assert len(times) >= 2 * len(ALWAYS_TIMED)
    assert min(times) > 0


def test_no_contender_fails(tables: list[dict[str, Any]]) -> None:
    assert [table["failures"] for table in tables] == [{}, {}]


def fail() -> None:
    raise RuntimeError("no kernel\nfor this")


def test_a_failure_of_a_contender_that_may_fail_is_kept() -> None:
    failures = warm_up({"bisect": fail, "softmax": lambda: None}, may_fail={"bisect"})
    assert failures == {"bisect": "no kernel"}


def test_a_failure_of_another_contender_ends_the_benchmark() -> None:
    with pytest.raises(RuntimeError, match="no kernel"):
        warm_up({"1.5": fail}, may_fail={"bisect"})


def test_processor_time_of_a_gpu_is_refused() -> None:
    with pytest.raises(UserError, match="processor time is not that of a GPU"):
        parse_arguments(["--device", "cuda", "--clock", "cpu"])


@pytest.mark.parametrize(
    ("arguments", "clock"),
    [
        pytest.param([], "cpu", id="one thread"),
        pytest.param(["--threads", "2"], "wall", id="two threads"),
        pytest.param(["--device", "cuda"], "wall", id="GPU"),
        pytest.param(["--threads", "2", "--clock", "cpu"], "cpu", id="as named"),
    ],
)
def test_by_default_only_one_thread_is_timed_by_the_processor(
    arguments: list[str], clock: str
) -> None:
    assert parse_arguments(arguments).clock == clock
