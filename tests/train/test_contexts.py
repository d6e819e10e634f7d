"""Contexts of a training: a heap that garbage collection leaves alone, and precision on a GPU."""

import gc

import pytest
import torch

from onmt_entmax.train.contexts import frozen_heap, tf32_products


def test_objects_that_the_caller_has_frozen_stay_frozen() -> None:
    """conftest.py does so: it freezes the libraries' objects once, for all tests."""
    gc.freeze()
    with frozen_heap():
        pass
    assert gc.get_freeze_count() > 0


@pytest.mark.parametrize(("enabled", "inside"), [(True, "high"), (False, "highest")])
def test_products_are_in_tf32_only_inside_the_context(enabled: bool, inside: str) -> None:
    """PyTorch calls TF32 "high", and float32 "highest"."""
    with tf32_products(enabled):
        assert torch.get_float32_matmul_precision() == inside
    assert torch.get_float32_matmul_precision() == "highest"
