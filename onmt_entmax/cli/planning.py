"""Plan a training for a time, which `prepare` is given with `--minutes`.

`measure` measures the candidates, `choice_for` chooses one of them, and `plan_for` plans its
training. Before the last step, `prepare` may add hallucinated pairs to the data, and choose again.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.measured_networks import MeasuredNetworks, measure_networks
from onmt_entmax.cli.plan_lines import plan_text
from onmt_entmax.cli.planned_networks import Network
from onmt_entmax.cli.plans import Choice, Plan, choose_network, choose_validations
from onmt_entmax.cli.training_file import CONFIGURATION


def measure(
    folder: Path, networks: Sequence[Network], *, gpu: bool, more_options: Sequence[str] = ()
) -> MeasuredNetworks:
    """Measure how fast networks train on the data that `prepare` has written.

    Args:
        folder: folder with the data and a configuration.
        networks: networks to choose from, smaller ones first.
        gpu: whether to train on a GPU.
        more_options: options of `train` that the configuration does not have yet.
    """
    on_gpu = ["-gpu_ranks", "0"] if gpu else []
    arguments = ["-config", str(folder / CONFIGURATION), *more_options, *on_gpu]
    return measure_networks(networks, arguments, gpu=gpu)


def choice_for(
    minutes: float, networks: MeasuredNetworks, *, hallucinated: int = 0, added: int = 0
) -> Choice:
    """Choose the network to train.

    Args:
        minutes: time of the training.
        networks: networks to choose from, with their speeds.
        hallucinated: number of hallucinated pairs among the data on which they were measured.
        added: number of hallucinated pairs that were added after the measurement.
    """
    rows = networks.examples - hallucinated
    return choose_network(rows, 60 * minutes, networks.speeds, hallucinated + added)


def plan_for(
    minutes: float,
    networks: MeasuredNetworks,
    choice: Choice,
    *,
    gpu: bool,
    added: int = 0,
    models: int = 1,
) -> Plan:
    """Measure how fast the chosen network validates; print its plan, and return it.

    Args:
        minutes: time of one training.
        networks: the measured networks.
        choice: the chosen network.
        gpu: whether they were measured on a GPU.
        added: number of hallucinated pairs that were added to the training data.
        models: number of trainings.
    """
    speeds = networks.validation_speeds(choice.network)
    plan = Plan(
        minutes,
        choice,
        choose_validations(
            networks.development_pairs,
            60 * minutes,
            loss_speed=speeds.loss,
            decode_speed=speeds.decoding,
        ),
        gpu=gpu,
        measured=[
            *networks.lines(),
            f"and, with the chosen network, decoded {speeds.decoding:,.0f} pairs/s",
        ],
        hallucinated=added,
        models=models,
    )
    print(*plan_text(plan), sep="\n", file=sys.stderr)
    return plan
