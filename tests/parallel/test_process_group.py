"""The process group of a run: one that the caller began stays the caller's."""

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist

from onmt_entmax.parallel.process_group import in_process_group
from onmt_entmax.parallel.processes import Processes


@pytest.fixture
def callers_group() -> Iterator[None]:
    """A process group, of this process alone, that the caller of a training began."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.mark.usefixtures("callers_group")
def test_a_group_that_the_caller_began_outlives_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with in_process_group(Processes(), torch.device("cpu"), advice="start again"):
        pass
    assert dist.is_initialized()
