"""The network and the schedule that `prepare` chooses for tables, as lines of YAML.

With `--minutes`, a plan chooses both. Otherwise there is a default network, and the number of rows
decides how long to train.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from onmt_entmax.cli.plan_lines import dropout_option, training_options
from onmt_entmax.cli.planned_networks import Network
from onmt_entmax.cli.plans import Plan
from onmt_entmax.cli.schedules import Schedule, decay_line, warmup_line
from onmt_entmax.cli.yaml_lines import with_comment

# Without --minutes: the network and the learning rate of config/morphology/pilot-quick.yaml, and
# forty passes over the rows. Fewer than 3,200 rows get more passes.
_DEFAULT = Network(encoder_layers=2, decoder_layers=2, size=300, batch=32)
_SCHEDULE = Schedule(passes=40, fewest=4_000, most=float("inf"), multiple=500, validations=20)
_LEARNING_RATE = 0.0014
_WARMUP = 300  # updates, at most
# With --minutes: Adam forgets squared gradients within about 50 updates, not 1,000, which suits
# short trainings; docs/results-plans.md has the trainings.
_PLANNED_BETA2 = 0.98


def network_without_plan(layers: int | None, size: int | None, batch: int | None) -> Network:
    """Return the network of a training without a plan; None stands for the default.

    Args:
        layers: number of layers of encoder and decoder.
        size: size of the states.
        batch: pairs in a batch.
    """
    return Network(
        encoder_layers=layers or _DEFAULT.encoder_layers,
        decoder_layers=layers or _DEFAULT.decoder_layers,
        size=size or _DEFAULT.size,
        batch=batch or _DEFAULT.batch,
    )


@dataclass(frozen=True)
class Training:
    """The part of a configuration that a plan or the number of rows decides.

    Attributes:
        network: lines of YAML for the network.
        schedule: lines of YAML for learning rate, batches, validations, checkpoints and the end.
        plan: plan for `--minutes`; None: the number of rows decides instead.
    """

    network: Sequence[str]
    schedule: Sequence[str]
    plan: Plan | None


def planned_training(plan: Plan) -> Training:
    """Return the training of a plan, which docs/guide-plans.md describes."""
    network = plan.choice.network
    return Training(
        network=[*_network_lines(network, attention="softmax"), dropout_option(plan)],
        schedule=[
            *_optimiser_lines(network.learning_rate, plan.updates, planned=True),
            f"batch_size: {network.batch}",
            *training_options(plan),
        ],
        plan=plan,
    )


def training_by_rows(
    rows: int, network: Network = _DEFAULT, updates: int | None = None
) -> Training:
    """Return the training without a plan.

    Args:
        rows: number of training rows, with the hallucinated pairs.
        network: network to train.
        updates: number of updates; None: the rows decide.
    """
    if updates is None:
        updates = _SCHEDULE.updates(rows, network.batch)
    return Training(
        network=_network_lines(network, attention="entmax15"),
        schedule=[
            *_optimiser_lines(_LEARNING_RATE, updates, planned=False),
            with_comment(f"attention_warmup_steps: {updates // 4}", "attention starts as softmax"),
            f"batch_size: {network.batch}",
            *_SCHEDULE.limits(updates, network.batch, rows, "row"),
        ],
        plan=None,
    )


def _network_lines(network: Network, attention: str) -> list[str]:
    """Return the options of a network, but its dropout, as lines of YAML."""
    return [
        "encoder_type: brnn",
        *(f"{name}: {number}" for name, number in network.sizes.items()),
        f"global_attention_function: {attention}",
        "generator_function: entmax15",
    ]


def _optimiser_lines(learning_rate: float, updates: int, *, planned: bool) -> list[str]:
    """Return the options of the optimiser and of its learning rate as lines of YAML."""
    return [
        "optim: adam",
        *([f"adam_beta2: {_PLANNED_BETA2}"] if planned else []),
        f"learning_rate: {learning_rate}",
        decay_line(planned=planned),
        warmup_line(updates, _WARMUP),
    ]
