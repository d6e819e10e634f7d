"""`tools.papers.tables run --cores`: the processor of each job."""

import os

import pytest

from onmt_entmax.errors import UserError
from tools.papers.processors import processors


@pytest.fixture(autouse=True)
def three_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process may use the processors 0, 2 and 5."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {5, 0, 2}, raising=False)


@pytest.mark.parametrize("names", [None, ""])
def test_without_names_the_system_chooses(names: str | None) -> None:
    assert processors(names, 2) == [None, None]


def test_each_job_gets_a_processor_in_order() -> None:
    assert processors("5,0,2", 2) == [5, 0]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        pytest.param("0", r"name 2 of the processors \[0, 2, 5\]", id="too few"),
        pytest.param("0,1", r"name 2 of the processors \[0, 2, 5\]", id="not there"),
        pytest.param("0,0", "0,0 names a processor twice", id="repeated"),
        pytest.param("0,x", "expected numbers such as 0,1, not 0,x", id="no number"),
    ],
)
def test_unusable_processors_are_refused(names: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        processors(names, 2)


# --- Windows and macOS, which bind no process to a processor -------------------------------


@pytest.fixture
def no_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")


@pytest.mark.usefixtures("no_binding")
def test_a_system_that_binds_no_process_refuses_names() -> None:
    with pytest.raises(UserError, match="--cores: this system binds no process"):
        processors("0,2", 2)


@pytest.mark.usefixtures("no_binding")
def test_a_system_that_binds_no_process_chooses_processors() -> None:
    assert processors("", 2) == [None, None]
