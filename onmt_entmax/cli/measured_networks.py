"""Measure how fast this machine trains the networks that a plan chooses from."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onmt_entmax.cli.planned_networks import Network
from onmt_entmax.errors import counted

if TYPE_CHECKING:  # slow to import
    from onmt_entmax.config import TrainingSetup
    from onmt_entmax.train.timing import Stopwatch, Timed, ValidationSpeeds

_SECONDS = 20.0  # for the measurement of all networks; validation takes a few more


@dataclass(frozen=True)
class MeasuredNetworks:
    """Networks and how fast they train.

    Attributes:
        stopwatch: measures on the corpora.
        setups: the training of each network, smaller ones first.
        speeds: training pairs a second of each network, in the same order. The last networks are
            missing if there was no time to measure them.
    """

    stopwatch: Stopwatch
    setups: Mapping[Network, TrainingSetup]
    speeds: Mapping[Network, float]

    @property
    def examples(self) -> int:
        """Number of pairs of the training data."""
        return self.stopwatch.examples

    @property
    def development_pairs(self) -> int:
        """Number of pairs of the development set."""
        return self.stopwatch.development_pairs

    def validation_speeds(self, network: Network) -> ValidationSpeeds:
        """Measure how fast a network is validated."""
        setup = self.setups[network]
        return self.stopwatch.validation_speeds(_timed(setup), setup.validation)

    def lines(self) -> list[str]:
        """Return a line of text for each network: its speed, or that it was not measured."""
        unmeasured = [network for network in self.setups if network not in self.speeds]
        return [
            *(f"{speed:,.0f} examples/s: {network}" for network, speed in self.speeds.items()),
            *(f"not measured in the time: {network}" for network in unmeasured),
        ]


def measure_networks(
    networks: Sequence[Network], arguments: Sequence[str], *, gpu: bool
) -> MeasuredNetworks:
    """Measure how fast networks train; first print how long that takes.

    Args:
        networks: smaller ones first.
        arguments: arguments of `train`, without those of a network.
        gpu: whether to measure on the GPU.
    """
    import torch  # slow to import, like the next modules

    from onmt_entmax.options.train import training_setup
    from onmt_entmax.train.timing import Stopwatch

    setups = {network: training_setup([*arguments, *network.options]) for network in networks}
    device = torch.device("cuda" if gpu else "cpu")
    measured = f"{counted(len(networks), 'network')} on this machine's {'GPU' if gpu else 'CPU'}"
    print(f"measuring {measured} for about {_SECONDS:g} s", file=sys.stderr, flush=True)
    setup = setups[networks[0]]  # all have the same corpora
    stopwatch = Stopwatch(setup.data, setup.vocabulary, device)
    # There are fewer speeds than networks if there was no time for the larger ones.
    speeds = stopwatch.training_speeds(list(map(_timed, setups.values())), _SECONDS)
    return MeasuredNetworks(stopwatch, setups, dict(zip(networks, speeds, strict=False)))


def _timed(setup: TrainingSetup) -> Timed:
    """Return the data, the network and the updates of a training, which are measured."""
    from onmt_entmax.train.timing import Timed  # slow to import

    return Timed(setup.data, setup.model, setup.training)
