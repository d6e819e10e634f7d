"""Damaged and hostile training states: one line, and the checkpoint before; never a crash."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from onmt_entmax.checkpoint import STATE, checkpoint_steps, read_training_state
from onmt_entmax.checksums import write_list
from onmt_entmax.cli.train import main as train
from onmt_entmax.options.train import training_setup
from onmt_entmax.train.resuming import resume
from tests.toy import write_config

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two checkpoints with averaged weights; returns its configuration."""
    folder = tmp_path_factory.mktemp("saved_state")
    config = write_config(folder, train_steps=4, save_checkpoint_steps=2, average_decay=0.01)
    assert train(["-config", str(config)]) == 0
    return config


def moment(change: Callable[[torch.Tensor], torch.Tensor], name: str = "exp_avg") -> Change:
    """Change a tensor of the first weight's optimiser state."""

    def apply(state: dict[str, Any]) -> None:
        entries = state["optimizer"]["state"][0]
        entries[name] = change(entries[name])

    return apply


def set_at(*keys: Any, value: Any) -> Change:
    """Set an entry, found by its keys."""

    def apply(state: Any) -> None:
        for key in keys[:-1]:
            state = state[key]
        state[keys[-1]] = value

    return apply


def share(state: dict[str, Any]) -> None:
    entries = state["optimizer"]["state"][0]
    entries["exp_avg"] = entries["exp_avg_sq"]


CHANGES: dict[str, Change] = {
    "no run": lambda s: s.pop("run"),
    "no optimizer": lambda s: s.pop("optimizer"),
    "no random": lambda s: s.pop("random"),
    "no position": lambda s: s.pop("position"),
    "run a list": set_at("run", value=[]),
    "step text": set_at("run", "step", value="4"),
    "step negative": set_at("run", "step", value=-4),
    "step true": set_at("run", "step", value=True),
    "step huge": set_at("run", "step", value=10**400),
    "seconds nan": set_at("run", "seconds", value=float("nan")),
    "decay infinite": set_at("run", "decay", value=float("inf")),
    "best text": set_at("run", "best", value="good"),
    "best_step a list": set_at("run", "best_step", value=[1]),
    "position negative": set_at("position", "batch", value=-1),
    "position a tensor": set_at("position", "epoch", value=torch.ones(())),
    "groups none": set_at("optimizer", "param_groups", value=None),
    "groups two": lambda s: s["optimizer"]["param_groups"].append({"params": []}),
    "groups fewer": lambda s: s["optimizer"]["param_groups"][0]["params"].pop(),
    "state a list": set_at("optimizer", "state", value=[]),
    "state of no weight": set_at("optimizer", "state", 9999, value={}),
    "state of text": set_at("optimizer", "state", "0", value={}),
    "moment missing": lambda s: s["optimizer"]["state"][0].pop("exp_avg"),
    "moment unknown": set_at("optimizer", "state", 0, "more", value=torch.ones(3)),
    "moment a number": set_at("optimizer", "state", 0, "exp_avg", value=1.0),
    "moment of another shape": moment(lambda t: t[:1].clone()),
    "moment empty": moment(lambda t: torch.empty(0)),
    "moment double": moment(torch.Tensor.double),
    "moment complex": moment(lambda t: t.to(torch.complex64)),
    "moment sparse": moment(torch.Tensor.to_sparse),
    "moment quantised": moment(lambda t: torch.quantize_per_tensor(t, 0.1, 0, torch.qint8)),
    "moment on meta": moment(lambda t: t.to("meta")),
    "moment expanded": moment(lambda t: torch.zeros(1).expand(t.shape)),
    "moment of overlapping rows": moment(
        lambda t: torch.zeros(t.numel()).as_strided(t.shape, (1, 1))
    ),
    "moment transposed": moment(lambda t: t.t().contiguous().t()),
    "moment in a larger block": moment(lambda t: torch.zeros(10, *t.shape)[3]),
    "moment with gradient": moment(lambda t: t.requires_grad_()),
    "moment a parameter": moment(lambda t: torch.nn.Parameter(t, requires_grad=False)),
    "moment nan": moment(lambda t: t.fill_(torch.nan)),
    "moments share memory": share,
    "second moment negative": moment(lambda t: t.fill_(-1.0), "exp_avg_sq"),
    "step of a weight negative": moment(lambda t: t.fill_(-3.0), "step"),
    "step of a weight a vector": moment(lambda t: torch.ones(5), "step"),
    "averages fewer": lambda s: s["raw_weights"].pop(),
    "averages a dict": set_at("raw_weights", value={}),
    "average of another shape": set_at("raw_weights", 0, value=torch.ones(2)),
    "average infinite": lambda s: s["raw_weights"][0].fill_(torch.inf),
    "random short": set_at("random", "cpu", 0, value=torch.zeros(7, dtype=torch.uint8)),
    "random of floats": set_at("random", "cpu", 0, value=torch.zeros(5056)),
    "random of zeros": set_at("random", "cpu", 0, value=torch.zeros(5056, dtype=torch.uint8)),
    "random none": set_at("random", "cpu", 0, value=None),
    "random of other lengths": lambda s: s["random"]["cuda"].clear(),
}


@pytest.fixture
def newest(trained: Path) -> Iterator[Path]:
    """The newest checkpoint, which a test may change."""
    folder = trained.parent / "run" / "step_4"
    kept = {path: path.read_bytes() for path in (folder / STATE, folder / "SHA256SUMS")}
    yield folder
    for path, content in kept.items():
        path.write_bytes(content)


def skipped(trained: Path) -> str:
    """Resume, which must pass over the newest checkpoint; return the warning."""
    told: list[str] = []
    again = ["-config", str(trained), "-train_from", str(trained.parent / "run")]
    setup = training_setup(again)
    resumed = resume(setup.run, setup.model, setup.training, told.append)
    assert resumed is not None
    assert resumed.step == 2
    assert len(told) == 2
    assert "\n" not in told[0]
    return told[0]


@pytest.mark.parametrize("name", CHANGES)
def test_a_state_that_was_changed_is_passed_over(trained: Path, newest: Path, name: str) -> None:
    state = read_training_state(newest)
    CHANGES[name](state)
    torch.save(state, newest / STATE)
    write_list(newest)
    assert skipped(trained).startswith(f"warning: {newest / STATE}: ")


def nested() -> bytes:
    """A state of a hundred thousand lists, each within the other."""
    saved = io.BytesIO()
    torch.save([], saved)
    return rewritten(saved.getvalue(), b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".")


def rewritten(
    content: bytes, pickled: bytes | None = None, kind: int = zipfile.ZIP_STORED
) -> bytes:
    """Return a file of torch's with another pickle in it, or with compressed parts."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(target, "w", kind) as new:
        for name in old.namelist():
            is_pickle = name.endswith("data.pkl") and pickled is not None
            new.writestr(name, pickled if is_pickle else old.read(name))
    return target.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        lambda: b"",
        lambda: pickle.dumps({"run": {}}),
        nested,
        lambda: rewritten(nested(), b"\x80\x02K\x01."),
    ],
    ids=["empty", "pickle", "nested", "number"],
)
def test_files_that_are_no_state(trained: Path, newest: Path, content: Callable[[], bytes]) -> None:
    (newest / STATE).write_bytes(content())
    write_list(newest)
    assert skipped(trained).startswith(f"warning: {newest / STATE}: ")


def test_a_state_that_unpacks_to_a_hundred_times_its_size(trained: Path, newest: Path) -> None:
    state = read_training_state(newest) | {"more": torch.zeros(30_000_000)}
    saved = io.BytesIO()
    torch.save(state, saved)
    (newest / STATE).write_bytes(rewritten(saved.getvalue(), kind=zipfile.ZIP_DEFLATED))
    write_list(newest)
    assert "state.pt: cut short or damaged" in skipped(trained)


@pytest.mark.parametrize("optim", ["sgd", "adagrad", "adadelta", "adafactor"])
def test_states_of_every_optimiser_are_accepted(tmp_path: Path, optim: str) -> None:
    config = write_config(tmp_path, train_steps=2, optim=optim, valid_steps=2)
    assert train(["-config", str(config)]) == 0
    again = ["-config", str(config), "-train_from", str(tmp_path / "run"), "-train_steps", "3"]
    assert train(again) == 0
    assert checkpoint_steps(tmp_path / "run") == [2, 3]


def test_what_a_saved_state_says_of_the_optimiser_does_not_count(
    trained: Path, newest: Path
) -> None:
    """Damaged betas or learning rates have no effect: the configuration has them."""
    state = read_training_state(newest)
    state["optimizer"]["param_groups"][0] |= {"betas": "x", "fused": None, "lr": [1]}
    torch.save(state, newest / STATE)
    write_list(newest)
    again = ["-config", str(trained), "-train_from", str(newest), "-train_steps", "5"]
    assert train([*again, "-save_model", str(trained.parent / "other")]) == 0
