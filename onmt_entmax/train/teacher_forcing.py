"""Measures of target tokens that follow the right ones: loss, token accuracy, support."""

from collections.abc import Sequence
from functools import partial

from torch import Tensor

from onmt_entmax.data.batch import Batch
from onmt_entmax.errors import counted
from onmt_entmax.exhaustion import named_exhaustion
from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.train.sums import Sums

_ADVICE = "make valid_batch_size smaller"  # where a batch is too large


def teacher_forced_measures(
    model: SparseNMTModel, batches: Sequence[Batch], pad: int
) -> dict[str, float]:
    """Return measures of target tokens that follow the right ones, by name.

    They are `loss` (mean per target token in nats, without label smoothing), `token_accuracy` (in
    percent) and `support` (mean number of nonzero probabilities per token).

    Args:
        model: in evaluation mode.
        batches: batches with targets, on the CPU.
        pad: padding id of the target, which no measure counts.
    """
    sums = Sums()
    for batch in batches:
        hidden, target = hidden_states(model, batch)
        with named_exhaustion(partial(_first_pair, batch), _ADVICE):
            result = model.generator.loss(hidden, target, pad)
        sums.add(
            loss=float(result.loss),
            tokens=float(result.tokens),
            correct=float(result.correct),
            support=float(result.support),
        )
    return sums.averages()


def hidden_states(model: SparseNMTModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return `SparseNMTModel.hidden_states` for a batch, which is moved to the model's device.

    Raises:
        TooLargeError: the batch does not fit in memory or the model; names the pair of its longest
            source.
    """
    with named_exhaustion(partial(_first_pair, batch), _ADVICE):
        return model.hidden_states(batch.to(device_of(model)))


def _first_pair(batch: Batch) -> str:
    """Return which pair of the development set made a batch large, for an error."""
    return (
        f"corpus 'valid': pair {batch.indices[0] + 1} of those that the filters keep: a "
        f"batch with its {counted(len(batch.source), 'source token')}"
    )
