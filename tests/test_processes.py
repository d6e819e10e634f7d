"""Several processes: the same updates as with one, one writer, and resuming."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from onmt_entmax.cli.train import main as train
from onmt_entmax.parallel.processes import ProcessError, Processes
from tests.commands import ENVIRONMENT, ROOT, succeed, weights
from tests.toy import write_config


def torchrun(processes: int, *arguments: object, script: str = "train.py") -> list[str]:
    """Return the command line of a run with several processes on this machine."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(processes)]
    address = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    return [*launcher, *address, str(ROOT / script), *map(str, arguments)]


def settings(folder: Path, **changes: object) -> dict[str, object]:
    """Return options of a training in a folder.

    Without dropout, whose masks are the one thing that differs between numbers of processes.
    """
    return {"dropout": 0.0, "save_model": str(folder), "train_steps": 20} | changes


def assert_close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


# Trains, and fails if threads of the process group remain: they may abort Python while it ends.
_TRAIN = """
import sys
from pathlib import Path
from onmt_entmax.cli.train import main
status = main(sys.argv[1:])
threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
sys.exit(status or [name for name in threads if "gloo" in name] or 0)
"""


def test_two_processes_are_one_process_with_the_same_batches(tmp_path: Path) -> None:
    changes = settings(tmp_path / "one", world_size=2)
    succeed("train.py", "-config", write_config(tmp_path, **changes))
    config = write_config(tmp_path, **settings(tmp_path / "two"))
    script = tmp_path / "train.py"
    script.write_text(_TRAIN)
    command = torchrun(2, "-config", config, script=str(script))
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("validation  step 20/20") == 1
    assert_close(weights(tmp_path / "one", 20), weights(tmp_path / "two", 20))
    # What two processes began, one continues, to the same weights as if it had been alone.
    longer = ["-config", config, "-train_steps", 30, "-world_size", 2]
    succeed("train.py", *longer, "-train_from", tmp_path / "two", "-save_model", tmp_path / "two")
    succeed("train.py", *longer, "-train_from", tmp_path / "one", "-save_model", tmp_path / "one")
    assert_close(weights(tmp_path / "one", 30), weights(tmp_path / "two", 30))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transforms": ["sentencepiece"], "tgt_subword_nbest": -1}, "nbest: the transform sen"),
        ({"world_size": 3}, "takes 3 batches .*, which 2 processes cannot share evenly"),
    ],
)
def test_several_processes_refuse_what_they_cannot_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict, message: str
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    config = write_config(tmp_path, **changes)
    with pytest.raises(ProcessError, match=message):
        train(["-config", str(config)])
    assert not (tmp_path / "run").exists()


def running(config: Path) -> subprocess.Popen[str]:
    """Return two processes under `torchrun` that have reported a step."""
    process = subprocess.Popen(
        torchrun(2, "-config", config), env=ENVIRONMENT, stderr=-1, text=True
    )
    assert any(" 30/10" in line for line in process.stderr)
    return process


def children(pid: int) -> list[int]:
    """Return the child processes of `pid`."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()]


def test_several_processes_that_nobody_started_are_one_line(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "train.py", "-config", write_config(tmp_path)]
    done = subprocess.run(
        command, env=ENVIRONMENT | {"WORLD_SIZE": "2"}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("train.py: error: WORLD_SIZE says that there are 2 processes")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds the workers through /proc")
@pytest.mark.slow
def test_a_killed_worker_ends_the_run_and_it_resumes(tmp_path: Path) -> None:
    config = write_config(tmp_path, **settings(tmp_path / "run", train_steps=100000))
    process = running(config)
    os.kill(children(process.pid)[-1], signal.SIGKILL)
    started = time.monotonic()
    printed = process.stderr.read()
    assert process.wait(120) != 0
    assert time.monotonic() - started < 100
    assert "this or another process of the run has failed" in printed
    run = tmp_path / "run"
    newest = max(int(path.name[5:]) for path in run.glob("step_*"))
    assert newest >= 20  # the report of a step comes before its checkpoint
    printed = succeed("train.py", "-config", config, "-train_from", run, "-train_steps", newest + 5)
    assert f"continuing from {run / f'step_{newest}'}" in printed


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds the workers through /proc")
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_what_ends_torchrun_lets_training_save(tmp_path: Path, number: signal.Signals) -> None:
    """A terminal or a scheduler signals all processes, and `torchrun` passes that on once more."""
    changes = dict.fromkeys(("train_steps", "valid_steps", "save_checkpoint_steps"), 10**6)
    config = write_config(tmp_path, **settings(tmp_path / "run", **changes))
    process = running(config)
    workers = children(process.pid)
    for pid in [process.pid, *(workers if number != signal.SIGKILL else [])]:
        os.kill(pid, number)
    printed = process.stderr.read()  # up to the end of the last process
    process.wait()
    (folder,) = (tmp_path / "run").glob("step_*")
    assert f"stopped at {folder.name.replace('_', ' ')} (" in printed


@pytest.mark.parametrize(("gpu", "local_rank", "expected"), [(1, None, 1), (0, 2, 2), (3, 0, 0)])
def test_the_chosen_gpu_becomes_the_current_one(
    gpu: int, local_rank: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise events and collective operations would use the first GPU."""
    current = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    if local_rank is not None:
        monkeypatch.setenv("WORLD_SIZE", "4")
        monkeypatch.setenv("LOCAL_RANK", str(local_rank))
    assert Processes().device(gpu, "gpu") == torch.device("cuda", expected)
    assert current == [torch.device("cuda", expected)]
    assert Processes().device(None, "gpu") == torch.device("cpu")


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


_CHILD = """
import signal, sys, time
from onmt_entmax.cli.children import end_with_parent
signal.signal(signal.SIGTERM, lambda *_: sys.exit("saved"))
end_with_parent()
print("ready", flush=True)
time.sleep(60)
"""
_KILLED = """
import os, subprocess, sys, time
environment = {**os.environ, "WORLD_SIZE": "1"}
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], env=environment)
time.sleep(60)
"""


def test_a_process_ends_with_the_one_that_it_is_part_of() -> None:
    command = [sys.executable, "-c", _KILLED, _CHILD]
    with subprocess.Popen(command, stdout=-1, stderr=-1, env=ENVIRONMENT, text=True) as parent:
        assert parent.stdout.readline() == "ready\n"
        started = time.monotonic()
        parent.kill()
        assert parent.stderr.read() == "saved\n"  # the child's, which holds the pipe until it ends
        assert time.monotonic() - started < 30
