"""How the fast encoder and decoder compute: precision of products, and fixed or packed steps."""

import torch

from onmt_entmax.nn.parts import Part


class RecurrenceOptions(Part):
    """How the fast encoder and decoder compute; a base of both.

    Attributes:
        matmul_dtype: type of the factors of products with weights: `torch.bfloat16`, or None for
            the weights' own type. Sums and states keep the weights' type.
        why_not_padded: None, since both can train on batches that are padded to few shapes.
        fixed_shapes: whether shapes are independent of the lengths; None: on all devices but CPUs.
    """

    fixed_shapes: bool | None = None
    why_not_padded: str | None = None

    def use_matmul_dtype(self, dtype: torch.dtype | None) -> None:
        """Set `matmul_dtype`."""
        self.matmul_dtype = dtype

    def has_fixed_steps(self, device: torch.device) -> bool:
        """Return whether steps on a device are fixed; see `Steps`."""
        return device.type != "cpu" if self.fixed_shapes is None else self.fixed_shapes
