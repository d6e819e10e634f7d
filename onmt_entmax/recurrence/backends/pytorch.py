"""The steps as PyTorch operations, for any device and type."""

import torch
from torch import Tensor

from onmt_entmax.recurrence.backends.contract import StepBackend
from onmt_entmax.recurrence.source_memory import RowSources
from onmt_entmax.sparse import entmax


class PyTorchBackend(StepBackend):
    """The steps in PyTorch; see `StepBackend` for arguments and results."""

    @staticmethod
    def cell_forward(
        gates: Tensor, summand: Tensor, cell: Tensor, factors: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        activations = gates.to(cell.dtype).add_(summand)
        input_gate, forget_gate, candidate, output_gate = activations.chunk(4, -1)
        input_gate.sigmoid_(), forget_gate.sigmoid_(), candidate.tanh_(), output_gate.sigmoid_()
        cell_after = torch.addcmul(input_gate * candidate, forget_gate, cell)
        hidden = output_gate * cell_after.tanh()
        output = hidden.clone() if factors is None else hidden * factors
        return activations, output, hidden, cell_after

    @staticmethod
    def cell_backward(
        activations: Tensor,
        cell: Tensor,
        cell_after: Tensor,
        factors: Tensor | None,
        grads: tuple[Tensor, Tensor, Tensor],
        grad_gates: Tensor,
    ) -> Tensor:
        input_gate, forget_gate, candidate, output_gate = activations.chunk(4, -1)
        grad_output, grad_hidden, grad_cell = grads
        grad_hidden = grad_hidden + (grad_output if factors is None else grad_output * factors)
        squashed = cell_after.tanh()
        grad_cell = grad_cell + grad_hidden * output_gate * (1 - squashed * squashed)
        parts = [
            grad_cell * candidate * input_gate * (1 - input_gate),
            grad_cell * cell * forget_gate * (1 - forget_gate),
            grad_cell * input_gate * (1 - candidate * candidate),
            grad_hidden * squashed * output_gate * (1 - output_gate),
        ]
        grad_gates.copy_(torch.cat(parts, -1))
        return grad_cell * forget_gate

    @staticmethod
    def attend(
        sources: RowSources,
        query: Tensor,
        projected: Tensor,
        factors: Tensor | None,
        weights: Tensor,
    ) -> Tensor:
        keys, values, lengths = sources.by_row(len(query))
        weights.copy_(entmax(_scores(query, keys, lengths), sources.alpha))
        start = projected.to(values.dtype).unsqueeze(1)
        output = torch.baddbmm(start, weights.unsqueeze(1), values).squeeze(1).tanh()
        return output if factors is None else output * factors

    @staticmethod
    def attend_backward(
        sources: RowSources,
        query: Tensor,
        factors: Tensor | None,
        weights: Tensor,
        output: Tensor,
        grad_output: Tensor,
        grad_projected: Tensor,
        grad_scores: Tensor,
    ) -> Tensor:
        keys, values, lengths = sources.by_row(len(query))
        if factors is not None:  # what is dropped has no gradient, so its output does not matter
            output = output / torch.where(factors == 0, 1.0, factors)
            grad_output = grad_output * factors
        before_tanh = grad_output * (1 - output * output)
        grad_projected.copy_(before_tanh)
        grad_weights = torch.bmm(before_tanh.unsqueeze(1), values.mT).squeeze(1)
        with torch.enable_grad():
            scores = _scores(query, keys, lengths).requires_grad_()
            recomputed = entmax(scores, sources.alpha)
        grad_scores.copy_(torch.autograd.grad(recomputed, scores, grad_weights)[0])
        return torch.bmm(grad_scores.unsqueeze(1), keys).squeeze(1)


def _scores(query: Tensor, keys: Tensor, lengths: Tensor) -> Tensor:
    """Return scores ``(rows, source)``, -inf at padding, of queries and keys of each row."""
    # The other order, matrix times vector, is eleven times slower in MKL.
    scores = torch.bmm(query.unsqueeze(1), keys.mT).squeeze(1)
    padding = torch.arange(keys.size(1), device=keys.device) >= lengths.unsqueeze(1)
    return scores.masked_fill(padding, -torch.inf).detach()
