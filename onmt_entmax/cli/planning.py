"""Plan a training for a time, which `prepare` is given with `--minutes`.

`measured_networks` measures how fast networks train here, and `plans` has the rule that chooses
one of them.
"""

import argparse
import sys
from collections.abc import Callable, Sequence

from onmt_entmax.cli.measured_networks import MeasuredNetworks
from onmt_entmax.cli.plan_lines import Plan
from onmt_entmax.cli.plans import (
    HALLUCINATED_PASSES,
    Network,
    choose_network,
    choose_validations,
)
from onmt_entmax.cli.training_file import CONFIGURATION
from onmt_entmax.errors import UserError
from onmt_entmax.rules import positive


def planning_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a plan for a time."""
    add = parser.add_argument
    add(
        "--minutes",
        type=positive(10**5),
        metavar="N",
        help="plan a training of this time on this machine, which is measured for half a minute",
    )
    add("--gpu", action="store_true", help="with --minutes: on this machine's GPU")


def check_plan(options: argparse.Namespace) -> None:
    """Refuse a plan that cannot be made, before anything is written.

    Raises:
        UserError: `--gpu` has no GPU here, or no plan.
    """
    if not options.gpu:
        return
    if not options.minutes:
        raise UserError("--gpu measures a GPU to plan for --minutes, which are missing")
    import torch  # slow to import

    if not torch.cuda.is_available():
        raise UserError("--gpu: there is no GPU here to measure; leave it out to plan for the CPU")


def plan_for(
    options: argparse.Namespace,
    networks: Sequence[Network],
    more_options: Sequence[str] = (),
    hallucinate: Callable[[], int] | None = None,
    *,
    already: int = 0,
) -> Plan:
    """Measure networks, choose one, and say so.

    Args:
        options: `minutes`, `gpu` and `out`, a folder with data and a configuration.
        networks: to choose from, smaller ones first.
        more_options: of `train`, which the configuration does not have yet.
        hallucinate: adds pairs to the training data and returns how many, which may be 0; it is
            called only if they are worth the passes that they cost. None: there are none to add.
        already: hallucinated pairs that are in the training data.
    """
    on_gpu = ["-gpu_ranks", "0"] if options.gpu else []
    arguments = ["-config", str(options.out / CONFIGURATION), *more_options, *on_gpu]
    measured = MeasuredNetworks.measure(networks, arguments, gpu=options.gpu)
    rows, seconds = measured.examples - already, 60 * options.minutes
    # The network first, since only its decoding is measured.
    choice = choose_network(rows, seconds, measured.speeds, already)
    hallucinated = 0
    if hallucinate is not None and choice.passes >= HALLUCINATED_PASSES:
        hallucinated = hallucinate()
        choice = choose_network(rows, seconds, measured.speeds, already + hallucinated)
    loss_speed, decode_speed = measured.validation_speeds(choice.network)
    plan = Plan(
        options.minutes,
        choice,
        choose_validations(measured.development_pairs, seconds, loss_speed, decode_speed),
        gpu=options.gpu,
        measured=[
            *measured.lines(),
            f"and, with the chosen network, decoded {decode_speed:,.0f} pairs/s",
        ],
        hallucinated=hallucinated,
    )
    print(*plan.lines, sep="\n", file=sys.stderr)
    return plan
