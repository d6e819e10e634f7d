"""The contract of a backend: steps of LSTM cells and of attention, and their gradients."""

from torch import Tensor

from onmt_entmax.recurrence.source_memory import RowSources


class StepBackend:
    """The interface of a backend; those in PyTorch, C++ and Triton agree up to rounding.

    Backends have no state: their methods are static, and the classes are never instantiated. Some
    results are returned. Others are written into memory that the caller has allocated: the
    arguments whose description begins with "receives". An argument ``grad_...`` is the gradient
    with respect to the tensor of that name.

    "The type of the states" is that of `cell` or `query`, float32 or float64. Tensors without a
    type here have it.
    """

    @staticmethod
    def cell_forward(
        gates: Tensor, summand: Tensor, cell: Tensor, factors: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Take an LSTM step (Hochreiter & Schmidhuber 1997, as `torch.nn.LSTMCell`).

        Args:
            gates: products ``(..., rows, 4 * hidden)``, in bfloat16 or the type of the states, in
                the order input, forget, candidate, output. A backend may write the activations
                over them.
            summand: ``(..., rows, 4 * hidden)``, added to the products.
            cell: cell states ``(..., rows, hidden)``.
            factors: dropout factors of the output, ``(rows, hidden)``, or None.

        Returns:
            - activations of the gates, ``(..., rows, 4 * hidden)``,
            - the output, the hidden state times the factors, ``(..., rows, hidden)``,
            - the hidden state, ``(..., rows, hidden)``,
            - the cell state, ``(..., rows, hidden)``.
        """
        raise NotImplementedError

    @staticmethod
    def cell_backward(
        activations: Tensor,
        cell: Tensor,
        cell_after: Tensor,
        factors: Tensor | None,
        grads: tuple[Tensor, Tensor, Tensor],
        grad_gates: Tensor,
    ) -> Tensor:
        """Return the gradient with respect to `cell`, ``(..., rows, hidden)``.

        Args:
            activations: the activations that `cell_forward` returned, ``(..., rows, 4 * hidden)``.
            cell: cell states before the step, ``(..., rows, hidden)``.
            cell_after: cell states after the step, ``(..., rows, hidden)``.
            factors: dropout factors of the output, ``(rows, hidden)``, or None.
            grads: gradients with respect to the output, the hidden state and the cell state that
                `cell_forward` returned, each ``(..., rows, hidden)``.
            grad_gates: receives the gradient with respect to the sum of gates and summand,
                ``(..., rows, 4 * hidden)``, in bfloat16 or the type of the states.
        """
        raise NotImplementedError

    @staticmethod
    def attend(
        sources: RowSources,
        query: Tensor,
        projected: Tensor,
        factors: Tensor | None,
        weights: Tensor,
    ) -> Tensor:
        """Return attentional vectors ``tanh(sum_j p_j values_j + projected) * factors``.

        p is entmax of the scores ``keys @ query``; see `EntmaxGlobalAttention.project`.

        Args:
            sources: keys and values, and which of them each row attends to.
            query: ``(rows, hidden)``.
            projected: the query times its weight W_q, ``(rows, hidden)``, in bfloat16 or the type
                of the states.
            factors: dropout factors, ``(rows, hidden)``, or None.
            weights: receives p, ``(rows, source)``. It must be zeros before.

        Returns:
            ``(rows, hidden)``.
        """
        raise NotImplementedError

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
        """Return the gradient with respect to the query through the scores, ``(rows, hidden)``.

        The gradient through `projected` is left to the caller.

        Args:
            sources: keys and values, and which of them each row attends to.
            query: ``(rows, hidden)``.
            factors: dropout factors, ``(rows, hidden)``, or None.
            weights: the weights that `attend` wrote, ``(rows, source)``.
            output: the vectors that `attend` returned, ``(rows, hidden)``.
            grad_output: gradient with respect to these vectors, ``(rows, hidden)``.
            grad_projected: receives the gradient with respect to `projected`, ``(rows, hidden)``,
                in bfloat16 or the type of the states. It is also the gradient with respect to the
                context vectors, since the tanh is of their sum.
            grad_scores: receives the gradient with respect to the scores, ``(rows, source)``. It
                must be zeros before.
        """
        raise NotImplementedError
