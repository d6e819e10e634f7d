"""Options of `combine` and `distill`: several reports or models, and a weight for each."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.errors import UserError, counted


def add_paths(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    """Declare an option that takes several paths, is required, and may be repeated.

    Args:
        parser: the parser of the command.
        name: name of the option, such as `--models`.
        text: help of the option.
    """
    parser.add_argument(
        name, type=Path, nargs="+", action="extend", default=[], required=True, help=text
    )


def normalised_weights(weights: Sequence[float], count: int, noun: str) -> list[float]:
    """Return `--weights`, divided by their sum.

    Args:
        weights: any positive numbers.
        count: how many there must be.
        noun: what has a weight, such as `report`.

    Raises:
        UserError: their number is not `count`, or one is not positive.
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
