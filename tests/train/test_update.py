"""An update is a step of autograd and a plain optimiser, with padded batches and without."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.train.reports import Report
from onmt_entmax.train.update import Update
from tests.train.updates import (
    RATE,
    RECURRENT,
    SENTENCES,
    TRANSFORMER,
    WORDS,
    batch_of,
    model_of,
    update_of,
)

SIZE = 2 * SENTENCES  # pairs of an update of two batches; losses are divided by it
NORM = 0.1  # of a gradient, at most


class PlainUpdate:
    """Updates by autograd and PyTorch's optimisers."""

    def __init__(self, model: SparseNMTModel, optim: str) -> None:
        self.model = model
        if optim == "adam":
            # epsilon as in OpenNMT-py
            self.optimizer: torch.optim.Optimizer = torch.optim.Adam(
                model.parameters(), 1.0, eps=1e-9
            )
        else:
            self.optimizer = torch.optim.SGD(model.parameters(), 1.0)

    def step(self, batches: Sequence[Batch], rate: float) -> Tensor:
        """Take a step; return the first four fields of its report, and the norm: ``(5,)``."""
        self.optimizer.param_groups[0]["lr"] = rate
        self.optimizer.zero_grad()
        sums = torch.zeros(4, dtype=torch.float64)
        for batch in batches:
            result = self.model.generator.loss(*self.model.hidden_states(batch), WORDS.pad)
            (result.loss / SIZE).backward()
            sums += torch.stack([value.detach().double() for value in result])
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), NORM)
        self.optimizer.step()
        return torch.cat([sums, norm.detach().view(1)])


class Comparison(NamedTuple):
    """Six updates of a model, and the same ones by autograd."""

    update: Update
    plain: PlainUpdate
    reports: list[Report]
    expected_reports: list[Report]
    gradients: list[Tensor]
    """Gradients that are left after the updates."""


SIGNAL, SECONDS = 15, 2.5  # any numbers, to find again in a report


@pytest.fixture(
    scope="module",
    params=[(RECURRENT, "adam"), (TRANSFORMER, "sgd")],
    ids=["recurrent", "transformer"],
)
def comparison(request: pytest.FixtureRequest, padded: bool, graphs: str) -> Comparison:
    """Each update has two batches, a gradient that is clipped, and a rate of its own."""
    config, optim = request.param
    model = model_of(config)
    update = update_of(model, padded=padded, graphs=graphs, norm=NORM, optim=optim)
    comparison = Comparison(update, PlainUpdate(model_of(config), optim), [], [], [])
    for step in range(6):
        rate = RATE / (step + 1)
        longest = 3 if step % 2 else 7  # of two shapes in turn
        batches = [batch_of(seed, longest) for seed in (step, step + 9)]
        *sums, norm = comparison.plain.step(batches, rate).tolist()
        comparison.expected_reports.append(Report(*sums, SIGNAL, SECONDS, norm))
        for batch in batches:
            update.add(batch, SIZE)
        update.report_signal(SIGNAL)
        update.report_seconds(SECONDS)
        comparison.reports.append(Report(*update.step((rate, rate)).tolist()))
    comparison.gradients.extend(p.grad for p in update.parameters if p.grad is not None)
    return comparison


in_each_mode = pytest.mark.parametrize(
    ("padded", "graphs"),
    [
        pytest.param(True, "on", id="graphs"),
        pytest.param(True, "check", id="checked graphs"),
        pytest.param(True, "off", id="padded"),
        pytest.param(False, "on", id="not padded"),
    ],
    scope="module",
)


@in_each_mode
def test_updates_report_what_autograd_measures(comparison: Comparison) -> None:
    for report, expected in zip(comparison.reports, comparison.expected_reports, strict=True):
        assert report._asdict() == pytest.approx(expected._asdict(), rel=1e-8)


@in_each_mode
def test_updates_train_the_weights_that_autograd_does(comparison: Comparison) -> None:
    pairs = zip(comparison.update.parameters, comparison.plain.model.parameters(), strict=True)
    for ours, expected in pairs:
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-8)


@in_each_mode
def test_updates_clear_the_gradients(comparison: Comparison) -> None:
    assert not any(gradient.any() for gradient in comparison.gradients)


@in_each_mode
def test_updates_are_recorded_if_graphs_are_on(
    comparison: Comparison, padded: bool, graphs: str
) -> None:
    """Graphs need padded batches."""
    assert (comparison.update.recorder.captured > 0) == (padded and graphs != "off")


def test_processes_add_their_gradients() -> None:
    """Two halves of an update in two processes, whose gradients and measurements are summed.

    Here the sums are written by hand, in place, as a collective operation writes them.
    """
    shares, whole = [update_of(model_of()) for _ in range(2)], update_of(model_of())
    for seed, share in enumerate(shares):
        share.add(batch_of(seed), SIZE)
        whole.add(batch_of(seed), SIZE)
    places = [[share.measured, *(p.grad for p in share.parameters)] for share in shares]
    sums = [sum(tensors) for tensors in zip(*places, strict=True)]
    expected = whole.step((RATE,)).clone()
    for share, own in zip(shares, places, strict=True):
        for place, total in zip(own, sums, strict=True):
            place.copy_(total)
        torch.testing.assert_close(share.step((RATE,)), expected)


def test_no_update_keeps_its_graph() -> None:
    """The nodes of autograd that add a weight's gradient are made anew after an update.

    A note at a node lives as long as the node; a graph that is kept would keep both.
    """
    model = model_of()
    update = update_of(model)
    update.add(batch_of(1), SIZE)

    def metadata() -> list[dict[str, object]]:
        """Return the notes at the node of each weight, for which any graph with it has one node."""
        nodes = [p.view_as(p).grad_fn.next_functions[0][0] for p in model.parameters()]
        return [node.metadata for node in nodes]

    for noted in metadata():
        noted["kept"] = True
    del noted  # else this name would keep the last node's notes
    assert not any(metadata())
