"""The device that a process chooses: a GPU that is named, the one of its number, or the CPU."""

import pytest
import torch

from onmt_entmax.parallel.devices import choose_device
from onmt_entmax.parallel.processes import ProcessError, Processes


@pytest.fixture
def current(monkeypatch: pytest.MonkeyPatch) -> list[torch.device]:
    """The devices that became the current one, on a machine with four GPUs."""
    current: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    return current


@pytest.mark.parametrize(
    ("gpu", "local_rank", "expected"),
    [
        pytest.param(1, None, 1, id="one process"),
        pytest.param(0, 2, 2, id="third of several processes"),
        pytest.param(3, 0, 0, id="first of several processes"),
    ],
)
def test_the_chosen_gpu_becomes_the_current_one(
    gpu: int,
    local_rank: int | None,
    expected: int,
    current: list[torch.device],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise events and collective operations would use the first GPU.

    One process has the GPU that is named. Each of several processes on a machine has the GPU of its
    own number, `local_rank`, whichever is named.
    """
    if local_rank is not None:
        monkeypatch.setenv("WORLD_SIZE", "4")
        monkeypatch.setenv("LOCAL_RANK", str(local_rank))
    assert choose_device(Processes(), gpu, "gpu") == torch.device("cuda", expected)
    assert current == [torch.device("cuda", expected)]


def test_the_cpu_leaves_the_current_gpu(current: list[torch.device]) -> None:
    assert choose_device(Processes(), None, "gpu") == torch.device("cpu")
    assert current == []


def test_a_gpu_that_is_not_there_is_named_with_its_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ProcessError, match="gpu_ranks: there is no GPU 1; this machine has 1 GPU"):
        choose_device(Processes(), 1, "gpu_ranks")


def test_without_a_gpu_the_cpu_is_used_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device(Processes(), 1, "gpu") == torch.device("cpu")
    assert capsys.readouterr().err == "warning: gpu 1: no GPU here; running on the CPU\n"
