"""Plan a training for a time: `--minutes` of `prepare` measures networks on this machine.

`plans` has the rule that chooses one of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:  # slow to import
    from onmt_entmax.options.train import TrainingSetup
    from onmt_entmax.train.timing import Stopwatch, Timed

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
    more_options: Sequence[str] = (),
    hallucinate: Callable[[], int] = lambda: 0,
) -> Plan:
    """Measure networks, choose one, and say so.

    Args:
        options: `minutes`, `gpu` and `out`, a folder with data and a configuration.
        networks: to choose from, smaller ones first.
        more_options: of `train`, which the configuration does not have yet.
        hallucinate: adds pairs to the training data and returns how many, which may be 0; it is
            called only if they are worth the passes that they cost.
    """
    measurement = _Measurement.of(options, networks, more_options)
    rows, seconds = measurement.watch.examples, 60 * options.minutes
    # The network first, since only its decoding is measured.
    choice = choose_network(rows, seconds, measurement.speeds)
    hallucinated = hallucinate() if choice.passes >= HALLUCINATED_PASSES else 0
    if hallucinated:
        choice = choose_network(rows + hallucinated, seconds, measurement.speeds)
    loss_speed, decode_speed = measurement.validation_speeds(choice.network)
    validations = choose_validations(
        measurement.watch.development_pairs, seconds, loss_speed, decode_speed
    )
    plan = Plan(
        options.minutes,
        choice,
        validations,
        gpu=options.gpu,
        measured=[
            *measurement.lines(),
            f"and, with the chosen network, decoded {decode_speed:,.0f} pairs/s",
        ],
        hallucinated=hallucinated,
    )
    print(*plan.lines, sep="\n", file=sys.stderr)
    return plan


@dataclass(frozen=True)
class _Measurement:
    """The networks that were measured on this machine.

    Attributes:
        watch: measures on the corpora.
        setups: the training of each network.
        speeds: examples a second of each network for which there was time, in order.
    """

    watch: Stopwatch
    setups: Mapping[Network, TrainingSetup]
    speeds: Mapping[Network, float]

    @classmethod
    def of(
        cls, options: argparse.Namespace, networks: Sequence[Network], more_options: Sequence[str]
    ) -> _Measurement:
        """Measure how fast networks train.

        Args:
            options: `gpu` and `out`, a folder with data and a configuration.
            networks: to measure, smaller ones first.
            more_options: of `train`, which the configuration does not have yet.
        """
        import torch  # slow to import, as the next lines are

        from onmt_entmax.options.train import training_setup
        from onmt_entmax.train.timing import Stopwatch

        path = str(options.out / CONFIGURATION)
        on_gpu = ["-gpu_ranks", "0"] if options.gpu else []
        setups = {
            network: training_setup(["-config", path, *more_options, *on_gpu, *network.options])
            for network in networks
        }
        device = "GPU" if options.gpu else "CPU"
        measured = f"{counted(len(networks), 'network')} on this machine's {device}"
        print(f"measuring {measured} for about {_SECONDS:g} s", file=sys.stderr, flush=True)
        setup = setups[networks[0]]  # all have the same corpora
        watch = Stopwatch(
            setup.data, setup.vocabulary, torch.device("cuda" if options.gpu else "cpu")
        )
        speeds = watch.training_speeds(list(map(_timed, setups.values())), _SECONDS)
        # `zip` ends with the networks for which there was time.
        return cls(watch, setups, dict(zip(networks, speeds, strict=False)))

    def validation_speeds(self, network: Network) -> tuple[float, float]:
        """Return the pairs a second whose loss is computed, and that are decoded."""
        setup = self.setups[network]
        return self.watch.validation_speeds(_timed(setup), setup.validation)

    def lines(self) -> list[str]:
        """Return what was measured, for people."""
        unmeasured = [network for network in self.setups if network not in self.speeds]
        return [
            *(f"{speed:,.0f} examples/s: {network}" for network, speed in self.speeds.items()),
            *(f"not measured in the time: {network}" for network in unmeasured),
        ]


def _timed(setup: TrainingSetup) -> Timed:
    """Return the part of a training that is measured."""
    from onmt_entmax.train.timing import Timed  # slow to import

    return Timed(setup.data, setup.model, setup.training)
