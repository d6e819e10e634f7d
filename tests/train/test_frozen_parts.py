"""Frozen parts of a network, in a run whose optimiser begins anew and in runs that continue it."""

from pathlib import Path

import pytest

from tests.commands import weights
from tests.train.runs import train_again

FREEZE_ENCODER = ("-freeze_encoder", "-freeze_word_vecs_enc")


@pytest.fixture
def frozen(arguments: list[str], run: Path, tmp_path: Path) -> Path:
    """A run of two updates whose encoder was frozen at step 6 of `run`."""
    anew = ["-train_from", run, "-reset_optim", "all", "-train_steps", 2]
    folder = tmp_path / "frozen"
    assert train_again(arguments, *anew, *FREEZE_ENCODER, "-save_model", folder) == 0
    return folder


def test_frozen_parts_keep_their_weights(frozen: Path, run: Path) -> None:
    before, after = weights(run, 6), weights(frozen, 2)
    for name, tensor in before.items():
        assert after[name].equal(tensor) == name.startswith("encoder."), name


def test_frozen_parts_stay_frozen_in_the_run_that_continues(
    arguments: list[str], frozen: Path, run: Path
) -> None:
    more = ["-train_from", frozen, "-train_steps", 4, "-save_model", frozen]
    assert train_again(arguments, *more, *FREEZE_ENCODER) == 0
    name = "encoder.embeddings.make_embedding.emb_luts.0.weight"
    assert weights(frozen, 4)[name].equal(weights(run, 6)[name])


def test_parts_that_were_frozen_are_trained_in_another_run(
    arguments: list[str], frozen: Path, tmp_path: Path
) -> None:
    anew = ["-train_from", frozen, "-reset_optim", "all", "-train_steps", 2]
    assert train_again(arguments, *anew, "-save_model", tmp_path / "free") == 0
    before, after = weights(frozen, 2), weights(tmp_path / "free", 2)
    assert not any(after[name].equal(tensor) for name, tensor in before.items())
