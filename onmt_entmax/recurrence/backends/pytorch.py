"""The steps as PyTorch operations, for any device and type.

This is the place to read what a step computes. `StepBackend` has the arguments and their shapes;
`copy_` writes results into the arguments that receive them.
"""

import torch
from torch import Tensor

from onmt_entmax.recurrence.backends.contract import StepBackend
from onmt_entmax.recurrence.source_memory import RowSources
from onmt_entmax.sparse import entmax


class PyTorchBackend(StepBackend):
    """The steps in PyTorch; see `StepBackend` for arguments and results.

    Gates are in the order input, forget, candidate, output.
    """

    @staticmethod
    def cell_forward(
        gates: Tensor, summand: Tensor, cell: Tensor, factors: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        activations = gates.to(cell.dtype).add_(summand)
        input_gate, forget_gate, candidate, output_gate = activations.chunk(4, -1)
        # The gates are views, so this changes `activations` in place.
        for gate in (input_gate, forget_gate, output_gate):
            gate.sigmoid_()
        candidate.tanh_()
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
        grad_output, grad_hidden, grad_cell_after = grads
        if factors is not None:
            grad_output = grad_output * factors
        # Gradients reach the hidden state through the output, too, and the new cell state through
        # the hidden state.
        grad_hidden = grad_hidden + grad_output
        squashed = cell_after.tanh()
        grad_cell_after = grad_cell_after + grad_hidden * output_gate * (1 - squashed * squashed)
        # The gradient with respect to each gate's argument: for an activation a, the derivative of
        # the sigmoid is a (1 - a), and that of the tanh is 1 - a^2.
        grad_by_gate = [
            grad_cell_after * candidate * input_gate * (1 - input_gate),
            grad_cell_after * cell * forget_gate * (1 - forget_gate),
            grad_cell_after * input_gate * (1 - candidate * candidate),
            grad_hidden * squashed * output_gate * (1 - output_gate),
        ]
        grad_gates.copy_(torch.cat(grad_by_gate, -1))
        return grad_cell_after * forget_gate

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
        # The context vector, as a sum of values, plus the projected query: (rows, 1, hidden).
        projected = projected.to(values.dtype).unsqueeze(1)
        output = torch.baddbmm(projected, weights.unsqueeze(1), values).squeeze(1).tanh()
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
        if factors is not None:  # the output of dropped units does not matter: their gradient is 0
            output = output / torch.where(factors == 0, 1.0, factors)
            grad_output = grad_output * factors
        grad_before_tanh = grad_output * (1 - output * output)
        grad_projected.copy_(grad_before_tanh)
        grad_weights = torch.bmm(grad_before_tanh.unsqueeze(1), values.mT).squeeze(1)
        # Entmax runs again, so that autograd can differentiate it. The scores are detached, since
        # products compute the gradients of queries and keys, not autograd.
        with torch.enable_grad():
            scores = _scores(query, keys, lengths).detach().requires_grad_()
            recomputed = entmax(scores, sources.alpha)
        grad_scores.copy_(torch.autograd.grad(recomputed, scores, grad_weights)[0])
        return torch.bmm(grad_scores.unsqueeze(1), keys).squeeze(1)


def _scores(query: Tensor, keys: Tensor, lengths: Tensor) -> Tensor:
    """Return the scores of each row, ``(rows, source)``, which are -inf at padding.

    Args:
        query: ``(rows, hidden)``.
        keys: ``(rows, source, hidden)``.
        lengths: real source positions of each row, ``(rows,)``.
    """
    # Vector times matrix. The other order, matrix times vector, is eleven times slower in MKL.
    scores = torch.bmm(query.unsqueeze(1), keys.mT).squeeze(1)
    padding = torch.arange(keys.size(1), device=keys.device) >= lengths.unsqueeze(1)
    return scores.masked_fill(padding, -torch.inf)
