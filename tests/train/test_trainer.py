"""Updates of the trainer: their gradients, dropout and number formats."""

import copy
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest
import torch

from onmt_entmax.data.batch import Batch
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.model import SparseNMTModel
from tests.train.changed_trainers import after_each_update, give_dev_losses
from tests.train.trainers import trainer_of, weights_of

# --- gradients -------------------------------------------------------------------------------

RATE, SMOOTHING = 0.5, 0.1


def divisor(batches: Sequence[Batch], normalization: str, pad: int) -> int:
    """Return what the sum of the losses of an update is divided by.

    Neither padding nor start symbols are counted as tokens.
    """
    if normalization == "sents":
        return sum(batch.target.size(1) for batch in batches)
    return sum(int((batch.target[1:] != pad).sum()) for batch in batches)


def descend(model: SparseNMTModel, batches: Sequence[Batch], normalization: str, pad: int) -> None:
    """Take one step of gradient descent on the mean loss of all batches."""
    results = [
        model.generator.loss(*model.hidden_states(batch), pad, SMOOTHING) for batch in batches
    ]
    loss = sum(result.loss for result in results) / divisor(batches, normalization, pad)
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter -= RATE * gradient


@pytest.mark.usefixtures("padded")
@pytest.mark.parametrize("normalization", ["sents", "tokens"])
def test_an_update_is_a_step_on_the_mean_over_all_its_batches(
    tmp_path: Path, normalization: str
) -> None:
    """The first update has one batch, the second has three."""
    run = trainer_of(
        tmp_path, rnn_size=8, optim="sgd", learning_rate=RATE, max_grad_norm=0, dropout=0.0,
        label_smoothing=SMOOTHING, normalization=normalization, accum_count=[1, 3],
        accum_steps=[0, 1], train_steps=2, valid_steps=100,
    )  # fmt: skip
    give_dev_losses(run, 1.0)
    model, pad = copy.deepcopy(run.model).train(), run.state.batches.data.vocabularies.target.pad
    stream = TrainingBatches(run.state.batches.data)
    stream.shapes = run.state.batches.shapes
    first, *others = islice(stream, 4)
    descend(model, [first], normalization, pad)
    descend(model, others, normalization, pad)
    run.train()
    torch.testing.assert_close(weights_of(run.model), weights_of(model), rtol=1e-5, atol=1e-6)


def test_a_gradient_is_clipped_to_its_norm(tmp_path: Path) -> None:
    """With a learning rate of 1, the weights move by the gradient."""
    run = trainer_of(
        tmp_path, rnn_size=8, optim="sgd", learning_rate=1.0, max_grad_norm=0.01, train_steps=1,
        valid_steps=100,
    )  # fmt: skip
    give_dev_losses(run, 1.0)
    before = weights_of(run.model)
    run.train()
    moves = [after - weight for after, weight in zip(weights_of(run.model), before, strict=True)]
    assert float(torch.nn.utils.get_total_norm(moves)) == pytest.approx(0.01, rel=1e-3)


# --- dropout and number formats --------------------------------------------------------------


def test_dropout_changes_at_its_steps(tmp_path: Path) -> None:
    run = trainer_of(
        tmp_path, rnn_size=8, dropout=[0.3, 0.1, 0.2], attention_dropout=[0.4, 0.5, 0.6],
        dropout_steps=[0, 2, 3], train_steps=4, valid_steps=100,
    )  # fmt: skip
    give_dev_losses(run, 1.0)
    dropouts: list[tuple[float, ...]] = []
    run.model.update_dropout = lambda *values: dropouts.append(values)
    run.train()
    assert dropouts == [(0.3, 0.4), (0.3, 0.4), (0.1, 0.5), (0.2, 0.6)]


@pytest.mark.parametrize(
    ("dtype", "in_training"), [("float32", None), ("bfloat16", torch.bfloat16)]
)
def test_products_are_in_bfloat16_only_in_training(
    tmp_path: Path, dtype: str, in_training: torch.dtype | None
) -> None:
    run = trainer_of(tmp_path, matmul_dtype=dtype, train_steps=2)
    dtypes: list[torch.dtype | None] = []
    after_each_update(run, lambda: dtypes.append(run.model.decoder.matmul_dtype))
    run.train()
    assert dtypes == [in_training] * 2
    run.model.eval()
    assert run.model.decoder.matmul_dtype is run.model.encoder.matmul_dtype is None


def test_bfloat16_products_hardly_change_the_loss(tmp_path: Path) -> None:
    """The loss is that of the development set, after two updates."""

    def loss_with(dtype: str) -> float:
        run = trainer_of(tmp_path, matmul_dtype=dtype, train_steps=2, dropout=0.0)
        run.train()
        return run.state.selection.best

    assert loss_with("bfloat16") == pytest.approx(loss_with("float32"), abs=0.05)
