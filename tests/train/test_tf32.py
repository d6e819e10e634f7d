"""TF32 products, which only a GPU has."""

import pytest
import torch

from onmt_entmax.train.tf32 import tf32_products


@pytest.mark.parametrize(("enabled", "inside"), [(True, "high"), (False, "highest")])
def test_products_are_in_tf32_only_inside_the_context(enabled: bool, inside: str) -> None:
    """PyTorch calls TF32 "high", and float32 "highest"."""
    with tf32_products(enabled):
        assert torch.get_float32_matmul_precision() == inside
    assert torch.get_float32_matmul_precision() == "highest"
