"""The contract of a backend: steps of LSTM cells and of attention, and their gradients."""

from torch import Tensor

from onmt_entmax.recurrence.source_memory import RowSources


class StepBackend:
    """The interface of a backend; those in PyTorch, C++ and Triton agree up to rounding.

    Backends have no state: their methods are static, and the classes are never instantiated. Some
    results are returned; others are written into arguments that the caller has allocated, which are
    described by "receives".
    """

    @staticmethod
    def cell_forward(
        gates: Tensor, summand: Tensor, cell: Tensor, factors: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Take an LSTM step (Hochreiter & Schmidhuber 1997, as `torch.nn.LSTMCell`).

        Args:
            gates: products ``(..., rows, 4 * hidden)``, in bfloat16 or the type of the states, in
                the order input, forget, candidate, output. Their memory may be reused for the
                activations.
            summand: ``(..., rows, 4 * hidden)``, added to the products.
            cell: cell states ``(..., rows, hidden)``.
            factors: dropout of the output, ``(rows, hidden)``, or None.

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
        """Return the gradient of `cell`, ``(..., rows, hidden)``.

        Args:
            activations: what `cell_forward` returned, ``(..., rows, 4 * hidden)``.
            cell: cell states before the step, ``(..., rows, hidden)``.
            cell_after: cell states after the step, ``(..., rows, hidden)``.
            factors: dropout of the output, ``(rows, hidden)``, or None.
            grads: gradients of output, hidden state and cell state, each ``(..., rows, hidden)``.
            grad_gates: receives the gradient of the gates, ``(..., rows, 4 * hidden)``, in bfloat16
                or the type of the states.
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
            factors: dropout, ``(rows, hidden)``, or None.
            weights: receives p, ``(rows, source)``; zeros before.

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
        """Return the gradient of the query through the scores, ``(rows, hidden)``.

        Args:
            sources: keys and values, and which of them each row attends to.
            query: ``(rows, hidden)``.
            factors: dropout, ``(rows, hidden)``, or None.
            weights: what `attend` wrote, ``(rows, source)``.
            output: what it returned, ``(rows, hidden)``.
            grad_output: gradient of the output, ``(rows, hidden)``.
            grad_projected: receives the gradient of `projected`, ``(rows, hidden)``, in bfloat16 or
                the type of the states. It is the gradient of what the tanh is taken of.
            grad_scores: receives the gradient of the scores, ``(rows, source)``; zeros before.
        """
        raise NotImplementedError
