"""The options of `prepare` that plan a training for a time, and their check."""

import argparse

from onmt_entmax.errors import UserError
from onmt_entmax.rules import positive


def planning_options(parser: argparse.ArgumentParser) -> None:
    """Declare `--minutes` and `--gpu`."""
    add = parser.add_argument
    add(
        "--minutes",
        type=positive(10**5),
        metavar="N",
        help="plan a training of N minutes, after measuring this machine for half a minute",
    )
    add("--gpu", action="store_true", help="with --minutes: plan for this machine's GPU")


def check_plan(options: argparse.Namespace) -> None:
    """Refuse a plan that cannot be made; `prepare` calls this before it writes anything.

    Raises:
        UserError: `--gpu` is given without `--minutes`, or this machine has no GPU.
    """
    if not options.gpu:
        return
    if not options.minutes:
        raise UserError("--gpu measures a GPU to plan for --minutes, which are missing")
    import torch  # slow to import

    if not torch.cuda.is_available():
        raise UserError("--gpu: there is no GPU here to measure; leave it out to plan for the CPU")
