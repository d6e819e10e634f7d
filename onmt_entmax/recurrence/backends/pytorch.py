"""The steps as PyTorch operations, for any device and type."""

import torch
from torch import Tensor

from onmt_entmax.recurrence.backends.contract import StepBackend
from onmt_entmax.recurrence.source_memory import Sources
from onmt_entmax.sparse import entmax


class PyTorchBackend(StepBackend):
    """The steps in PyTorch; see `StepBackend` for arguments and results."""

    @staticmethod
    def cell_forward(
        gates: Tensor, summand: Tensor, cell: Tensor, factors: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        activations = gates.to(cell.dtype).add_(summand)
        enter, forget, candidate, leave = activations.chunk(4, -1)
        enter, forget, candidate = enter.sigmoid_(), forget.sigmoid_(), candidate.tanh_()
        cell = torch.addcmul(enter * candidate, forget, cell)
        hidden = leave.sigmoid_() * cell.tanh()
        output = hidden.clone() if factors is None else hidden * factors
        return activations, output, hidden, cell

    @staticmethod
    def cell_backward(
        activations: Tensor,
        cell: Tensor,
        cell_after: Tensor,
        factors: Tensor | None,
        grads: tuple[Tensor, Tensor, Tensor],
        grad_gates: Tensor,
    ) -> Tensor:
        enter, forget, candidate, leave = activations.chunk(4, -1)
        output, hidden, inside = grads
        grad = hidden + (output if factors is None else output * factors)
        squashed = cell_after.tanh()
        inside = inside + grad * leave * (1 - squashed * squashed)
        parts = [
            inside * candidate * enter * (1 - enter),
            inside * cell * forget * (1 - forget),
            inside * enter * (1 - candidate * candidate),
            grad * squashed * leave * (1 - leave),
        ]
        grad_gates.copy_(torch.cat(parts, -1))
        return inside * forget

    @staticmethod
    def attend(
        sources: Sources, query: Tensor, product: Tensor, factors: Tensor | None, weights: Tensor
    ) -> Tensor:
        keys, values, lengths = sources.of_rows(len(query))
        weights.copy_(entmax(_scores(query, keys, lengths), sources.alpha))
        start = product.to(values.dtype).unsqueeze(1)
        output = torch.baddbmm(start, weights.unsqueeze(1), values).squeeze(1).tanh()
        return output if factors is None else output * factors

    @staticmethod
    def attend_backward(
        sources: Sources,
        query: Tensor,
        factors: Tensor | None,
        weights: Tensor,
        output: Tensor,
        grad_output: Tensor,
        grad: Tensor,
        grad_scores: Tensor,
    ) -> Tensor:
        keys, values, lengths = sources.of_rows(len(query))
        if factors is not None:  # what is dropped has no gradient, so its output does not matter
            output = output / torch.where(factors == 0, 1.0, factors)
            grad_output = grad_output * factors
        before = grad_output * (1 - output * output)
        grad.copy_(before)
        grad_weights = torch.bmm(before.unsqueeze(1), values.mT).squeeze(1)
        with torch.enable_grad():
            scores = _scores(query, keys, lengths).requires_grad_()
            again = entmax(scores, sources.alpha)
        grad_scores.copy_(torch.autograd.grad(again, scores, grad_weights)[0])
        return torch.bmm(grad_scores.unsqueeze(1), keys).squeeze(1)


def _scores(query: Tensor, keys: Tensor, lengths: Tensor) -> Tensor:
    # The other order, matrix times vector, is eleven times slower in MKL.
    scores = torch.bmm(query.unsqueeze(1), keys.mT).squeeze(1)
    padding = torch.arange(keys.size(1), device=keys.device) >= lengths.unsqueeze(1)
    return scores.masked_fill(padding, -torch.inf).detach()
