"""An update whose loss is nan or infinite is reported, and changes no weight."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from onmt_entmax.train.update import Update
from tests.train.trainers import assert_equal
from tests.train.updates import make_update, model_of, update_of


def nan_loss(loss: Tensor) -> Tensor:
    """Return nan, whose gradient is nan, too."""
    return loss * torch.nan


def infinite_loss(loss: Tensor) -> Tensor:
    """Return an infinite loss with a finite gradient."""
    return loss + torch.inf


def make_update_with(update: Update, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Make an update whose loss is changed by a function; return its report."""
    loss = update.loss
    update.loss = lambda batch: loss(batch)._replace(loss=change(loss(batch).loss))
    report = make_update(update)
    update.loss = loss
    return report


# The loss comes after three updates, of which the last ones are recorded if there are graphs.
with_graphs_and_without = pytest.mark.parametrize(
    "padded", [True, False], ids=["graphs", "not padded"]
)
each_loss = pytest.mark.parametrize("change", [nan_loss, infinite_loss])


@pytest.fixture
def update(padded: bool) -> Update:
    """The fourth update is the next."""
    update = update_of(model_of(), padded=padded)
    for _ in range(3):
        make_update(update)
    return update


@with_graphs_and_without
@each_loss
def test_a_loss_that_is_not_finite_is_reported(
    update: Update, change: Callable[[Tensor], Tensor]
) -> None:
    assert not make_update_with(update, change).isfinite().all()
    assert not update.finite


@with_graphs_and_without
@each_loss
def test_a_loss_that_is_not_finite_changes_no_weight(
    update: Update, change: Callable[[Tensor], Tensor]
) -> None:
    before = [parameter.detach().clone() for parameter in update.parameters]
    make_update_with(update, change)
    assert_equal(update.parameters, before)


@with_graphs_and_without
@each_loss
def test_a_loss_that_is_not_finite_does_not_change_the_next_update(
    update: Update, change: Callable[[Tensor], Tensor], padded: bool
) -> None:
    make_update_with(update, change)
    make_update(update)
    assert update.finite
    undisturbed = update_of(model_of(), padded=padded)
    for _ in range(4):
        make_update(undisturbed)
    assert_equal(update.parameters, undisturbed.parameters)
