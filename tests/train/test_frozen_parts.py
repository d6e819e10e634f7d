"""Frozen parts of a network, in a run that takes the weights of another and in those after it."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from torch import Tensor

from tests.commands import weights
from tests.train.runs import train_again

FREEZE_ENCODER = ("-freeze_encoder", "-freeze_word_vecs_enc")


def parts_alike(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> set[str]:
    """Return the parts of a model, such as `encoder`, that kept all their weights.

    Fails if a part kept some of its weights only.
    """
    kept, changed = set[str](), set[str]()
    for name, weight in before.items():
        part = name.split(".")[0]
        (kept if weight.equal(after[name]) else changed).add(part)
    assert not kept & changed
    return kept


@pytest.fixture
def frozen(arguments: list[str], run: Path, tmp_path: Path) -> Path:
    """A run of two updates whose encoder was frozen at step 6 of `run`."""
    anew = ["-train_from", run, "-reset_optim", "all", "-train_steps", 2]
    folder = tmp_path / "frozen"
    assert train_again(arguments, *anew, *FREEZE_ENCODER, "-save_model", folder) == 0
    return folder


def test_only_frozen_parts_keep_their_weights(frozen: Path, run: Path) -> None:
    assert parts_alike(weights(run, 6), weights(frozen, 2)) == {"encoder"}


def test_frozen_parts_stay_frozen_in_the_run_that_continues(
    arguments: list[str], frozen: Path, run: Path
) -> None:
    more = ["-train_from", frozen, "-train_steps", 4, "-save_model", frozen]
    assert train_again(arguments, *more, *FREEZE_ENCODER) == 0
    assert parts_alike(weights(run, 6), weights(frozen, 4)) == {"encoder"}


def test_parts_that_were_frozen_are_trained_in_another_run(
    arguments: list[str], frozen: Path, tmp_path: Path
) -> None:
    anew = ["-train_from", frozen, "-reset_optim", "all", "-train_steps", 2]
    assert train_again(arguments, *anew, "-save_model", tmp_path / "free") == 0
    assert parts_alike(weights(frozen, 2), weights(tmp_path / "free", 2)) == set()
