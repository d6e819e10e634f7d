"""Messages and files that would run code if they were unpickled are refused."""

import io
import pickle
from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import STATE, CheckpointError, read_training_state, save
from onmt_entmax.files.checksums import write_list
from onmt_entmax.model import build_model
from onmt_entmax.parallel.messages import packed, unpacked
from tests.evil import Evil
from tests.models import BRNN, VOCABULARIES


def test_a_message_of_another_process_runs_nothing(tmp_path: Path) -> None:
    with pytest.raises(pickle.UnpicklingError):
        unpacked(packed([Evil(tmp_path / "harm")]))
    assert not (tmp_path / "harm").exists()


def test_the_same_message_does_harm_if_it_is_unpickled(tmp_path: Path) -> None:
    """A control: without it, the test above could pass with a harmless message."""
    content = packed([Evil(tmp_path / "harm")])
    torch.load(io.BytesIO(content.numpy().tobytes()), weights_only=False)
    assert (tmp_path / "harm").exists()


def test_a_training_state_runs_nothing(tmp_path: Path) -> None:
    save(tmp_path / "model", build_model(BRNN, VOCABULARIES), BRNN, VOCABULARIES, {}, {"a": 1})
    torch.save({"run": Evil(tmp_path / "harm")}, tmp_path / "model" / STATE)
    write_list(tmp_path / "model")
    with pytest.raises(CheckpointError, match="cut short or damaged"):
        read_training_state(tmp_path / "model")
    assert not (tmp_path / "harm").exists()
