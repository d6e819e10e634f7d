"""How a layer of the LSTM encoder runs over all steps of a batch, packed or fixed.

`steps.py` explains packed and fixed steps. `layers_for` returns an object of the class for either;
`encoder.py` calls its `run` for each layer, from the lowest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from onmt_entmax.nn.products import linear
from onmt_entmax.recurrence.deferred import after_all_steps
from onmt_entmax.recurrence.embedding import expand
from onmt_entmax.recurrence.layer import LayerStep, LayerWeight
from onmt_entmax.recurrence.steps import Steps

States = tuple[Tensor, Tensor]
"""Hidden states and cell states, in the same shape."""

# Summands that close or open a gate, whatever product is added to them: the sigmoid is then exactly
# 0 or 1, even in float64.
_CLOSED, _OPEN = -1e4, 1e4
# The gates' order in PyTorch's weights of an LSTM.
_INPUT_GATE, _FORGET_GATE, _CANDIDATE, _OUTPUT_GATE = range(4)


class DirectionWeights(NamedTuple):
    """The weights of one direction of a layer, in the order of `nn.LSTM.all_weights`.

    Attributes:
        input_weight: ``(4 * hidden, in)``.
        hidden_weight: ``(4 * hidden, hidden)``.
        input_bias: ``(4 * hidden,)``.
        hidden_bias: ``(4 * hidden,)``.
    """

    input_weight: Tensor
    hidden_weight: Tensor
    input_bias: Tensor
    hidden_bias: Tensor


class EncoderLayers(ABC):
    """Runs the layers of an encoder over the steps of a batch.

    Args:
        steps: the rows of each step.
        batch: number of sentences.
        hidden_size: hidden size of one direction.
        matmul_dtype: type of the factors of products, see `linear`.
    """

    def __init__(
        self, steps: Steps, batch: int, hidden_size: int, matmul_dtype: torch.dtype | None
    ) -> None:
        self._steps = steps
        self._batch = batch
        self._hidden_size = hidden_size
        self._matmul_dtype = matmul_dtype

    @abstractmethod
    def run(
        self, x: Tensor, token_rows: Tensor | None, weights: Sequence[DirectionWeights]
    ) -> tuple[Tensor, States]:
        """Run one layer.

        Args:
            x: inputs ``(rows, in)``, a row for each token or for each distinct token.
            token_rows: the row of each token in `x`, ``(total,)``, see `expand`; None: each token
                has a row of its own, in order.
            weights: the weights of each direction, forwards first.

        Returns:
            Hidden states ``(total, directions * hidden)``, and the last hidden and cell states
            ``(directions, batch, hidden)``.
        """

    def _input_part(self, x: Tensor, weights: DirectionWeights) -> Tensor:
        """Return the gates' part from inputs ``(rows, in)`` and biases, ``(rows, 4 * hidden)``."""
        bias = weights.input_bias + weights.hidden_bias
        return linear(x, weights.input_weight, bias, self._matmul_dtype)

    def _run_steps(
        self, hidden_weight: Tensor, summand: Tensor, first: Tensor, *, backwards: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run the steps of one direction, or of all at once.

        Args:
            hidden_weight: ``(..., 4 * hidden, hidden)``.
            summand: the gates' part of the inputs, ``(..., total, 4 * hidden)``.
            first: hidden and cell states before the first step, ``(..., batch, hidden)``.
            backwards: whether the last step comes first.

        Returns:
            Hidden states of all steps ``(..., total, hidden)``, and the last hidden and cell
            states ``(..., batch, hidden)``.
        """
        layer = LayerWeight(hidden_weight, summand, self._steps.sizes, self._matmul_dtype)
        dependency = after_all_steps(layer, hidden_weight, summand)
        hidden = cell = first
        order = range(len(self._steps.sizes))
        outputs = []
        for step in reversed(order) if backwards else order:
            output, hidden, cell = LayerStep.apply(
                layer, dependency, step, None, None, hidden, cell
            )
            outputs.append(output)
        if backwards:
            outputs.reverse()
        return torch.cat(outputs, -2), hidden, cell


class PackedLayers(EncoderLayers):
    """Layers over packed steps, one direction after the other."""

    def run(
        self, x: Tensor, token_rows: Tensor | None, weights: Sequence[DirectionWeights]
    ) -> tuple[Tensor, States]:
        """Run one layer, see `EncoderLayers.run`."""
        summands = [expand(self._input_part(x, direction), token_rows) for direction in weights]
        first = x.new_zeros(self._batch, self._hidden_size)
        outputs, hiddens, cells = [], [], []
        # Not strict: an encoder with one direction has no weights for going backwards.
        for backwards, direction, summand in zip((False, True), weights, summands, strict=False):
            states, hidden, cell = self._run_steps(
                direction.hidden_weight, summand, first, backwards=backwards
            )
            outputs.append(states)
            hiddens.append(hidden)
            cells.append(cell)
        return torch.cat(outputs, 1), (torch.stack(hiddens), torch.stack(cells))


class FixedLayers(EncoderLayers):
    """Layers over fixed steps, with one product a step for all directions.

    The second direction takes its steps in reverse order. So padding comes first there, where it
    leaves the cell states 0. Hidden states at padding have no meaning.

    The arguments are those of `EncoderLayers`; the steps must be fixed.
    """

    def __init__(
        self, steps: Steps, batch: int, hidden_size: int, matmul_dtype: torch.dtype | None
    ) -> None:
        super().__init__(steps, batch, hidden_size, matmul_dtype)
        assert steps.real is not None, "only fixed steps have padding"
        assert steps.last is not None
        self._real = steps.real  # which rows are no padding, (total, 1)
        self._last = steps.last  # the row of each sentence's last step, (batch,)

    def run(
        self, x: Tensor, token_rows: Tensor | None, weights: Sequence[DirectionWeights]
    ) -> tuple[Tensor, States]:
        """Run one layer, see `EncoderLayers.run`; each row has its own input."""
        assert token_rows is None
        at_padding = self._gates_at_padding(x)
        summands = [
            torch.where(self._real, self._input_part(x, direction), at_padding)
            for direction in weights
        ]
        summands[1:] = map(self._steps.reversed, summands[1:])
        hidden_weights = torch.stack([direction.hidden_weight for direction in weights])
        first = x.new_zeros(len(weights), self._batch, self._hidden_size)
        states, hidden, cell = self._run_steps(
            hidden_weights, torch.stack(summands), first, backwards=False
        )
        outputs, hiddens = [*states], [*hidden]
        # Steps at padding keep cell states, but not hidden states. The first direction ends with
        # padding, so its last hidden states are taken from the last real step of each sentence. The
        # second direction ends with the first token of each sentence, which is real.
        hiddens[0] = outputs[0].index_select(0, self._last)
        outputs[1:] = map(self._steps.reversed, outputs[1:])
        return torch.cat(outputs, 1), (torch.stack(hiddens), cell)

    def _gates_at_padding(self, x: Tensor) -> Tensor:
        """Return summands ``(4 * hidden,)`` under which a step keeps the cell state.

        The new cell state is ``forget gate * cell state + input gate * candidate``: with an open
        forget gate and a closed input gate, exactly the old one.

        Args:
            x: has the type and the device of the result. The gates are filled on that device, since
                CUDA graphs cannot record copies from a CPU.
        """
        gates = x.new_zeros(4, self._hidden_size)
        gates[_INPUT_GATE] = _CLOSED
        gates[_FORGET_GATE] = _OPEN
        return gates.flatten()


def layers_for(
    steps: Steps, batch: int, hidden_size: int, matmul_dtype: torch.dtype | None
) -> EncoderLayers:
    """Return `FixedLayers` for fixed steps, else `PackedLayers`; arguments as `EncoderLayers`."""
    layers = FixedLayers if steps.are_fixed else PackedLayers
    return layers(steps, batch, hidden_size, matmul_dtype)
