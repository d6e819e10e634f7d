"""Plan a training for a time: `--minutes` of `prepare` measures networks on this machine.

`plans` has the rule that chooses one of them.
"""

import argparse
import sys
from collections.abc import Callable, Sequence

from onmt_entmax.cli.plans import (
    HALLUCINATED_PASSES,
    Network,
    Plan,
    choose_network,
    choose_validations,
)
from onmt_entmax.cli.training_file import CONFIGURATION
from onmt_entmax.errors import UserError, counted
from onmt_entmax.rules import positive

_SECONDS = 20.0  # in which networks are measured


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
    more: Sequence[str] = (),
    hallucinate: Callable[[], int] = lambda: 0,
) -> Plan:
    """Measure networks, choose one, and say so.

    Args:
        options: `minutes`, `gpu` and `out`, a folder with data and a configuration.
        networks: to choose from, smaller ones first.
        more: options of `train` that the configuration does not have yet.
        hallucinate: adds pairs to the training data and returns how many, which may be 0; it is
            called only if they are worth the passes that they cost.
    """
    import torch  # slow to import, as the next lines are

    from onmt_entmax.options.train import training_setup
    from onmt_entmax.train.timing import Stopwatch, Timed

    path = str(options.out / CONFIGURATION)
    more = [*more, "-gpu_ranks", "0"] if options.gpu else more
    setups = [training_setup(["-config", path, *more, *each.options]) for each in networks]
    timed = [Timed(setup.data, setup.model, setup.training) for setup in setups]
    device = "GPU" if options.gpu else "CPU"
    what = f"{counted(len(networks), 'network')} on this machine's {device}"
    print(f"measuring {what} for about {_SECONDS:g} s", file=sys.stderr, flush=True)
    watch = Stopwatch(
        setups[0].data, setups[0].vocabulary, torch.device("cuda" if options.gpu else "cpu")
    )
    measured = watch.training_speeds(timed, _SECONDS)
    speeds = dict(zip(networks, measured, strict=False))
    seconds = 60 * options.minutes
    # The network first, since only its decoding is measured.
    choice = choose_network(watch.examples, seconds, speeds)
    hallucinated = hallucinate() if choice.passes >= HALLUCINATED_PASSES else 0
    if hallucinated:
        choice = choose_network(watch.examples + hallucinated, seconds, speeds)
    chosen = networks.index(choice.network)
    rates = watch.validation_speeds(timed[chosen], setups[chosen].validation)
    lines = [f"{speed:,.0f} examples/s: {network}" for network, speed in speeds.items()]
    lines += [f"not measured in the time: {network}" for network in networks[len(speeds) :]]
    lines.append(f"and, with the chosen network, decoded {rates[1]:,.0f} pairs/s")
    validations = choose_validations(watch.development_pairs, seconds, *rates)
    plan = Plan(options.minutes, choice, validations, options.gpu, lines, hallucinated)
    print(*plan.lines, sep="\n", file=sys.stderr)
    return plan
