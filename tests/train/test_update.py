"""An update is a step of autograd and a plain optimiser, with padded batches and without."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Batch
from onmt_entmax.model import SparseNMTModel
from tests.train.trainers import weights
from tests.train.updates import (
    RECURRENT,
    SENTENCES,
    TRANSFORMER,
    WORDS,
    batch_of,
    model_of,
    update_of,
)

SIZE = 2 * SENTENCES  # pairs of an update of two batches; losses are divided by it
RATE = 0.01  # of learning
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
        """Take a step; return the sums ``(4,)`` of a loss, and the norm of the gradient."""
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


@pytest.mark.parametrize(
    ("config", "optim"),
    [(RECURRENT, "adam"), (TRANSFORMER, "sgd")],
    ids=["recurrent", "transformer"],
)
@pytest.mark.parametrize(
    ("padded", "graphs"),
    [
        pytest.param(True, "on", id="graphs"),
        pytest.param(True, "check", id="checked graphs"),
        pytest.param(True, "off", id="padded"),
        pytest.param(False, "on", id="not padded"),
    ],
)
def test_updates_are_those_of_autograd(
    padded: bool, graphs: str, config: ModelConfig, optim: str
) -> None:
    """Each has two batches, with clipping and a rate of its own; reports are compared, too."""
    ours = model_of(config)
    update = update_of(ours, padded=padded, graphs=graphs, norm=NORM, optim=optim)
    plain = PlainUpdate(model_of(config), optim)
    for step in range(6):
        rate = RATE / (step + 1)
        longest = 3 if step % 2 else 7  # of two shapes in turn
        batches = [batch_of(seed, longest) for seed in (step, step + 9)]
        *sums, norm = plain.step(batches, rate)
        for batch in batches:
            update.add(batch, SIZE)
        signal, seconds = 15, 2.5  # any, to find again in the report
        update.report_signal(signal)
        update.report_seconds(seconds)
        report = update.step((rate, rate))
        expected = torch.tensor([*sums, signal, seconds, norm], dtype=torch.float64)
        torch.testing.assert_close(report, expected, rtol=1e-8, atol=0)
        assert not any(p.grad is not None and p.grad.any() for p in ours.parameters())
    for mine, other in zip(ours.parameters(), plain.model.parameters(), strict=True):
        assert float((mine - other).detach().abs().max()) <= 1e-8
    assert (update.recorder.captured > 0) == (padded and graphs != "off")


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


@pytest.mark.parametrize("padded", [True, False], ids=["graphs", "not padded"])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda loss: loss * torch.nan, id="nan, and so is the gradient"),
        pytest.param(lambda loss: loss + torch.inf, id="infinite, with a finite gradient"),
    ],
)
def test_a_loss_that_is_not_finite_changes_no_weight(
    padded: bool, change: Callable[[Tensor], Tensor]
) -> None:
    """After three updates, of which one was recorded; the next update is as if it had not been."""
    model = model_of()
    update = update_of(model, padded=padded)
    loss = update.loss

    def changes_weights() -> bool:
        """Make an update; return whether it changes any, and check what it says of itself."""
        before = weights(model)
        update.add(batch_of(0), SIZE)
        finite = bool(update.step((RATE,)).isfinite().all())
        assert finite == bool(update.finite)
        changed = not all(map(Tensor.equal, before, weights(model)))
        assert changed == finite
        return changed

    assert all(changes_weights() for _ in range(3))
    update.loss = lambda batch: loss(batch)._replace(loss=change(loss(batch).loss))
    assert not changes_weights()
    update.loss = loss
    assert changes_weights()


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
