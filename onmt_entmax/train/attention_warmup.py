"""The warm-up of sparse attention, which starts as softmax."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.nn.multi_headed_attention import EntmaxMultiHeadedAttention

# Below this alpha, entmax hardly differs from softmax, which is faster.
_LEAST_ALPHA = 1.1


class AttentionWarmup:
    """Raise alpha of the attention from 1 (softmax) to the model's own.

    A source position with zero weight gets no gradient, so attention that is sparse from the start
    learns slowly where to look. Alpha rises linearly over the first updates; while it is small, the
    attention is softmax.

    Args:
        model: the alphas of its attention modules rise; learned ones are left as they are.
        steps: updates until alpha is the model's own; 0 for no warm-up.
    """

    def __init__(self, model: nn.Module, steps: int) -> None:
        self._alphas = {
            module: module.alpha
            for module in model.modules()
            if isinstance(module, (EntmaxGlobalAttention, EntmaxMultiHeadedAttention))
            and module.alpha is not None
        }
        self._steps = steps

    @contextmanager
    def applied(self, step: int) -> Iterator[None]:
        """Set alpha inside the block, for the update that follows `step` updates.

        After the block, alpha is the model's own again, for validations and checkpoints.
        """
        if step >= self._steps:
            yield
            return
        try:
            for module, alpha in self._alphas.items():
                raised = 1 + (alpha - 1) * step / self._steps
                module.alpha = raised if raised >= _LEAST_ALPHA else 1.0
            yield
        finally:
            for module, alpha in self._alphas.items():
                module.alpha = alpha
