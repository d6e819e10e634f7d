"""Transfers to and from a GPU, simulated on a CPU: the calls, their order and their effect."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch
from onmt_entmax.train import Trainer, TrainingError
from onmt_entmax.train.transfer import PendingValues, Transfer
from tests.train.test_trainer import Poisoned, assert_equal, trainer_of, weights


def make_batch() -> Batch:
    source, target = torch.arange(6).view(3, 2, 1), torch.arange(8).view(4, 2, 1)
    return Batch(source, torch.tensor([3, 2]), target, torch.tensor([4, 4]), (0, 1))


def test_a_cpu_takes_batches_as_they_are() -> None:
    batch = make_batch()
    assert Transfer(torch.device("cpu"))(batch) is batch


def test_batches_are_pinned_copied_aside_and_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    class Stream:
        def __init__(self, name: object) -> None:
            self.name = name

        def wait_stream(self, other: Stream) -> None:
            said.append(f"{self.name} waits for {other.name}")

    @contextmanager
    def entered(stream: Stream):
        said.append("aside")
        yield
        said.append("back")

    def sent(tensor: Tensor, device: torch.device, non_blocking: bool) -> Tensor:
        said.append(f"copy to {device}, {'not ' if non_blocking else ''}waiting")
        return tensor.clone()

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", entered)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream("current"))
    monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: said.append("pin") or tensor)
    monkeypatch.setattr(Tensor, "to", sent)
    monkeypatch.setattr(Tensor, "record_stream", lambda _, stream: said.append("keep"))
    batch = make_batch()
    moved = Transfer(torch.device("cuda", 0))(batch)
    copy = ["pin", "copy to cuda:0, not waiting"]
    assert said == ["aside", *copy, *copy, "back", "current waits for cuda:0", "keep", "keep"]
    assert moved.source.equal(batch.source)
    assert moved.source is not batch.source
    assert moved.source_lengths is batch.source_lengths  # read on this side
    assert moved.target_lengths is batch.target_lengths


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_values_arrive_in_order_and_in_time(delay: int) -> None:
    pending = PendingValues(delay)
    read: list[object] = []
    for step in range(7):
        pending.send(torch.tensor([float(step), 0.5]), step)
        read += pending.read()
        assert read == [([float(at), 0.5], at) for at in range(max(0, step + 1 - delay))]
    read += pending.read(everything=True)
    assert read == [([float(at), 0.5], at) for at in range(7)]
    assert not list(pending.read(everything=True))


def test_values_of_a_gpu_are_waited_for_when_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []

    class Event:
        record = staticmethod(lambda: said.append("sent"))
        synchronize = staticmethod(lambda: said.append("wait"))

    class OnGPU:
        """A vector that looks as if it were on a GPU."""

        device, shape, dtype = SimpleNamespace(type="cuda"), (1,), torch.float32

    empty = torch.empty

    def pinned(shape: tuple[int, ...], dtype: torch.dtype, pin_memory: bool) -> Tensor:
        assert pin_memory
        here = empty(shape, dtype=dtype)
        monkeypatch.setattr(Tensor, "copy_", lambda to, _, non_blocking: to.fill_(7))
        return here

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch, "empty", pinned)
    pending = PendingValues(1)
    pending.send(OnGPU(), "first")  # type: ignore[arg-type]
    assert not list(pending.read())
    assert said == ["sent"]
    assert list(pending.read(everything=True)) == [([7.0], "first")]
    assert said == ["sent", "wait"]


# --- training that reads its values late, on the CPU -----------------------------------------


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trainer, "_delay", lambda _: 1)


def run_both(
    folder: Path, monkeypatch: pytest.MonkeyPatch, poison: set[int], **changes: object
) -> list[Trainer]:
    """Make the same run twice, reading values at once and late."""
    trainers = []
    for reads_late in (False, True):
        monkeypatch.setattr(Trainer, "_delay", lambda _, delay=int(reads_late): delay)
        path = folder / str(reads_late)
        path.mkdir()
        trainer = trainer_of(path, **changes)
        trainer.loss = Poisoned(trainer.loss, poison)
        trainers.append(trainer)
    return trainers


def test_reading_late_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = run_both(tmp_path, monkeypatch, {3, 4, 20, 30}, on_nonfinite="skip")
    for trainer in (one, other):
        torch.manual_seed(5)  # of dropout
        assert trainer.train().reason == "train_steps"
    assert_equal(weights(one.model), weights(other.model))
    assert (one.state.skipped, one.state.step) == (other.state.skipped, other.state.step) == (4, 30)
    assert one.state.previous_loss == other.state.previous_loss
    states = [trainer.state_dict()["optimizer"]["state"] for trainer in (one, other)]
    for number, state in states[0].items():
        assert all(value.equal(states[1][number][name]) for name, value in state.items())


def test_a_stop_comes_one_update_later_with_the_same_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = run_both(tmp_path, monkeypatch, {12}, batch_size=8)
    found = []
    for trainer in (one, other):
        with pytest.raises(TrainingError, match="the loss is nan at step 12 "):
            trainer.train()
        path = trainer.run.path / "nonfinite_step_12.json"
        found.append(json.loads(path.read_text()))
    assert found[0] == found[1]
    assert (one.state.step, other.state.step) == (11, 12)
    assert all(weight.isfinite().all() for weight in weights(other.model))


def test_a_nan_in_the_last_update_is_not_saved(late: None, tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, train_steps=10, valid_steps=1000)
    trainer.loss = Poisoned(trainer.loss, {10})
    with pytest.raises(TrainingError, match="at step 10 "):
        trainer.train()
    assert not list(trainer.run.path.glob("step_*"))


def test_a_cpu_reads_at_once(tmp_path: Path) -> None:
    assert trainer_of(tmp_path)._pending.delay == 0
