"""One of several processes: its device, gradients and messages, and its end with its parent."""

import subprocess
import sys
import time

import pytest
import torch

from onmt_entmax.parallel.processes import ProcessError, Processes
from tests.commands import ENVIRONMENT, started

# --- devices ---------------------------------------------------------------------------------


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
        pytest.param(1, None, 1, id="one process: the GPU that is named"),
        pytest.param(0, 2, 2, id="the third of several"),
        pytest.param(3, 0, 0, id="the first of several, whatever is named"),
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

    Each of several processes on a machine has the GPU of its own number, `local_rank`.
    """
    if local_rank is not None:
        monkeypatch.setenv("WORLD_SIZE", "4")
        monkeypatch.setenv("LOCAL_RANK", str(local_rank))
    assert Processes().device(gpu, "gpu") == torch.device("cuda", expected)
    assert current == [torch.device("cuda", expected)]


def test_the_cpu_leaves_the_current_gpu(current: list[torch.device]) -> None:
    assert Processes().device(None, "gpu") == torch.device("cpu")
    assert current == []


def test_a_gpu_that_is_not_there_is_named_with_its_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ProcessError, match="gpu_ranks: there is no GPU 1; this machine has 1 GPU"):
        Processes().device(1, "gpu_ranks")


def test_without_a_gpu_the_cpu_is_used_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert Processes().device(1, "gpu") == torch.device("cpu")
    assert capsys.readouterr().err == "warning: gpu 1: no GPU here; running on the CPU\n"


# --- gradients and messages ------------------------------------------------------------------


def test_without_gradients_there_is_nothing_to_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """So no process waits for another one."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    parameter = torch.zeros(3, requires_grad=True)
    Processes().sum_gradients([parameter])
    assert parameter.grad is None


@pytest.mark.parametrize(("rank", "printed"), [(0, "note\n"), (1, "")])
def test_messages_are_of_the_first_process(
    rank: int,
    printed: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("RANK", str(rank))
    Processes().say("note")
    assert capsys.readouterr().err == printed


# --- the end of its parent -------------------------------------------------------------------

# A process of a run, which says that it has saved when it gets SIGTERM.
_CHILD = """
import signal, sys, time
from onmt_entmax.cli.children import end_with_parent
signal.signal(signal.SIGTERM, lambda *_: sys.exit("saved"))
end_with_parent()
print("ready", flush=True)
time.sleep(60)
"""
# The process that starts it.
_PARENT = """
import os, subprocess, sys, time
environment = {**os.environ, "WORLD_SIZE": "1"}
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], env=environment)
time.sleep(60)
"""


def test_a_process_ends_with_the_one_that_it_is_part_of() -> None:
    command = [sys.executable, "-c", _PARENT, _CHILD]
    pipe = subprocess.PIPE
    with started(command, stdout=pipe, stderr=pipe, env=ENVIRONMENT, text=True) as parent:
        assert parent.stdout.readline() == "ready\n"
        killed = time.monotonic()
        parent.kill()
        assert parent.stderr.read() == "saved\n"  # the child's, which holds the pipe until it ends
        assert time.monotonic() - killed < 30
