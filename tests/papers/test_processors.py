"""`tools.papers.tables run --cores`: the processors to which trainings are bound."""

import os

import pytest

from onmt_entmax.errors import UserError
from tools.papers.running import processors

needs_binding = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity"), reason="this system binds no process to a processor"
)


@needs_binding
def test_a_processor_of_this_process_may_be_named() -> None:
    usable = min(os.sched_getaffinity(0))
    assert processors(str(usable), jobs=1) == [usable]


@needs_binding
def test_a_processor_that_this_process_may_not_use_is_refused() -> None:
    other = max(os.sched_getaffinity(0)) + 1
    with pytest.raises(UserError, match="--cores: name 1 of the processors"):
        processors(str(other), jobs=1)


class TestSystemsThatBindNoProcess:
    """Windows and macOS."""

    @pytest.fixture(autouse=True)
    def no_binding(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(os, "sched_getaffinity", raising=False)

    def test_refuse_names_of_processors(self) -> None:
        with pytest.raises(UserError, match="--cores: this system binds no process"):
            processors("0", jobs=1)

    def test_choose_the_processors_of_jobs(self) -> None:
        assert processors("", jobs=2) == [None, None]
