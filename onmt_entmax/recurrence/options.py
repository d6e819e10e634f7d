"""Settings of the fast encoder and decoder: the type of products, and packed or fixed steps."""

import torch

from onmt_entmax.nn.parts import Part


class RecurrenceOptions(Part):
    """Mixin with the settings that `FastRNNEncoder` and `FastInputFeedRNNDecoder` have in common.

    Sums and states always have the weights' type, whatever `matmul_dtype` is.

    Attributes:
        fixed_shapes: whether steps are fixed, so that no shape depends on the lengths, as CUDA
            graphs need; None: on all devices but CPUs. `steps.py` explains fixed steps.
    """

    fixed_shapes: bool | None = None
    why_not_padded: str | None = None  # both can train on padded batches

    def use_matmul_dtype(self, dtype: torch.dtype | None) -> None:
        """Set `matmul_dtype`, the type of the factors of products; None is the type of weights."""
        self.matmul_dtype = dtype

    def has_fixed_steps(self, device: torch.device) -> bool:
        """Return whether steps on a device are fixed; see `fixed_shapes`."""
        return device.type != "cpu" if self.fixed_shapes is None else self.fixed_shapes
