"""What the checks of a backend's cells and attention share: sizes, dropout and a comparison.

`cell_checks.py` and `attention_checks.py` have the checks themselves.
"""

import pytest
import torch
from torch import Tensor

from onmt_entmax.recurrence.backends.contract import StepBackend

ROWS, HIDDEN = 5, 37  # neither is a multiple of the width of vectors
Backend = type[StepBackend]

dropout = pytest.mark.parametrize("has_dropout", [False, True], ids=["plain", "dropout"])

# Relative tolerances by the type of a result. In float32, backends sum in another order, and
# compute exponentials otherwise: this is about a thousand machine epsilons. In bfloat16, such a
# difference may change the rounding to the next number, which is 2 ** -8 to 2 ** -7 of a number
# away; the former is enough for these inputs.
_TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 2**-8}


def dropout_factors(has_dropout: bool, device: str) -> Tensor | None:
    """Return factors ``(ROWS, HIDDEN)`` that drop about three of ten numbers, or None."""
    if not has_dropout:
        return None
    return (torch.rand(ROWS, HIDDEN, device=device) < 0.7).float() / 0.7


def assert_close(results: dict[str, Tensor], expected: dict[str, Tensor], atol: float) -> None:
    """Compare the results of a step, and their types.

    Args:
        results: results of the backend under test, by name.
        expected: results of PyTorch, by the same names.
        atol: absolute tolerance.
    """
    assert results.keys() == expected.keys()
    for name, result in expected.items():
        torch.testing.assert_close(
            results[name],
            result,
            rtol=_TOLERANCES[result.dtype],
            atol=atol,
            msg=lambda message, name=name: f"{name}: {message}",
        )
