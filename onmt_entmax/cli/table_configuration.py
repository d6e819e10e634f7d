"""The configuration that `prepare` writes for a table of strings."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from onmt_entmax.cli.plan_lines import dropout_line, limit_lines
from onmt_entmax.cli.plans import Network, Plan
from onmt_entmax.cli.schedules import Schedule, decay_line, warmup_line
from onmt_entmax.cli.training_file import Corpus, training_file
from onmt_entmax.cli.yaml_lines import with_comment

HALLUCINATED = "hallucinated"  # corpus of hallucinated pairs, and its files
# Without --minutes: forty passes over the rows, or more over few rows.
DEFAULT = Network(encoder_layers=2, decoder_layers=2, size=300, batch=32)
_SCHEDULE = Schedule(passes=40, fewest=4_000, most=float("inf"), multiple=500, validations=20)
_LEARNING_RATE = 0.0014
_WARMUP = 300  # updates, at most
_LARGEST_WORDS_WEIGHT = 20  # beside hallucinated pairs, which may be many times more


def network_of(options: argparse.Namespace) -> Network:
    """Return the network without a plan: the default one, with the sizes that the user names."""
    return Network(
        options.layers or DEFAULT.encoder_layers,
        options.layers or DEFAULT.decoder_layers,
        options.size or DEFAULT.size,
        options.batch or DEFAULT.batch,
    )


@dataclass(frozen=True)
class Training:
    """The part of a configuration that a plan or the number of rows decides.

    Attributes:
        network: lines of YAML.
        schedule: lines of YAML: learning rate, batches, when to validate, to save and to end.
        plan: for a time; None: the number of rows decides.
    """

    network: Sequence[str]
    schedule: Sequence[str]
    plan: Plan | None


def planned_training(plan: Plan) -> Training:
    """Return the training of a plan, which docs/guide-training.md describes."""
    network = plan.choice.network
    return Training(
        network=[*_network_lines(network, attention="softmax"), dropout_line(plan)],
        schedule=[
            *_optimiser_lines(network.learning_rate, plan.updates, planned=True),
            f"batch_size: {network.batch}",
            *limit_lines(plan),
        ],
        plan=plan,
    )


def training_by_rows(rows: int, network: Network = DEFAULT, updates: int | None = None) -> Training:
    """Return the training without a plan.

    Args:
        rows: of the training data, with hallucinated ones.
        network: to train.
        updates: of the training; None: by the rows.
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
        f"learning_rate: {learning_rate}",
        decay_line(planned=planned),
        warmup_line(updates, _WARMUP),
    ]


def configuration(
    out: Path,
    training: Training,
    *,
    rows: int,
    hallucinated: int = 0,
    languages: int,
    commands: Sequence[str],
    task: Sequence[str] = (),
) -> str:
    """Return the text of a configuration that trains a model.

    Args:
        out: the folder that is filled.
        training: of `planned_training` or `training_by_rows`.
        rows: of the training data.
        hallucinated: pairs to train on, too.
        languages: how many there are.
        commands: for the comment at its head.
        task: lines that say what the model reads and writes.
    """
    selection = "exact_match" if languages == 1 else "macro_accuracy"
    settings = [
        *task,
        "",
        *training.network,
        "",
        *training.schedule,
        with_comment("keep_checkpoint: 1", "beside the best"),
        with_comment(f"selection: {selection}", "measure of the best checkpoint"),
        "seed: 1",
        "",
    ]
    corpora = _corpora(out, rows, hallucinated)
    return training_file(corpora, out / "model", settings, commands, training.plan)


def _corpora(out: Path, rows: int, hallucinated: int) -> dict[str, Corpus]:
    """Return the corpora of a training by name; see `configuration` for the arguments."""
    files = {"words": "train", "valid": "dev"}
    weights: dict[str, int] = {}
    if hallucinated:
        files = {"words": "train", HALLUCINATED: HALLUCINATED, "valid": "dev"}
        # Else the smaller corpus would be read several times while the larger one is read once.
        weights = mixture(rows, hallucinated)
    return {
        name: Corpus(out / f"{split}.src", out / f"{split}.tgt", weights.get(name))
        for name, split in files.items()
    }


def mixture(rows: int, hallucinated: int) -> dict[str, int]:
    """Return the weights with which both corpora end together, nearly; none if they are equal.

    Of 300 rows and 100 hallucinated pairs, three rows are read, then one pair, then three rows, ...

    Args:
        rows: of the training data.
        hallucinated: pairs of the other corpus.
    """
    least = Fraction(1, _LARGEST_WORDS_WEIGHT)
    ratio = Fraction(hallucinated, rows).limit_denominator(_LARGEST_WORDS_WEIGHT) or least
    if ratio == 1:
        return {}
    return {"words": ratio.denominator, HALLUCINATED: ratio.numerator}
