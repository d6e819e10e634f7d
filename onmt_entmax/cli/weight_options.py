"""Options of `combine` and `distill`: several reports or models, and a weight for each."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.errors import UserError, counted

SEVERAL_PATHS: dict[str, Any] = {"type": Path, "nargs": "+", "action": "extend", "default": []}
"""Keywords of an option that takes several paths, and may be repeated"""


def shares(weights: Sequence[float], count: int, noun: str) -> list[float]:
    """Return `--weights`, divided by their sum.

    Args:
        weights: any positive numbers.
        count: how many there must be.
        noun: what each is the weight of, such as `report`.

    Raises:
        UserError: they are not `count` positive numbers.
    """
    if len(weights) != count:
        number = counted(len(weights), "number")
        raise UserError(f"--weights has {number} for {counted(count, noun)}")
    if 0 in weights:
        raise UserError(f"--weights has 0: leave out this {noun} and its weight")
    total = sum(weights)
    if not (all(weight > 0 for weight in weights) and total < float("inf")):
        raise UserError("--weights must be positive numbers, whose sum a float can hold")
    return [weight / total for weight in weights]
