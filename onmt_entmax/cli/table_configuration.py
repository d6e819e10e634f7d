"""The configuration that `prepare` writes for a table of strings."""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from onmt_entmax.cli.plan_lines import Plan
from onmt_entmax.cli.plans import Network
from onmt_entmax.cli.training_file import training_file
from onmt_entmax.cli.yaml_lines import explained
from onmt_entmax.errors import counted

HALLUCINATED = "hallucinated"  # corpus of invented pairs, and its files
DEFAULT = Network(encoder_layers=2, decoder_layers=2, size=300, batch=32)  # without --minutes
# Without a plan: passes over the rows, and the updates that they come to.
_PASSES = 40
_FEWEST_UPDATES = 4_000
_MULTIPLE = 500  # to which updates are rounded up, so that validations divide them
_VALIDATIONS = 20
_WARMUP = 300  # updates, at most; few updates have a fifth
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
    """A network, how long to train it, and the options that depend on whether there is a plan.

    Attributes:
        network: to train.
        plan: for a time; None: the number of rows decides.
        updates: of the training.
        end: the option at whose end the learning rate is 0, for a comment.
        learning_rate: the largest one.
        attention: the mapping of attention.
        dropout: lines of YAML; none for the default.
        attention_warmup: lines of YAML.
        limits: lines of YAML that say when to validate, to save and to end.
    """

    network: Network
    plan: Plan | None
    updates: int
    end: str
    learning_rate: float
    attention: str
    dropout: Sequence[str]
    attention_warmup: Sequence[str]
    limits: Sequence[str]


def planned_training(plan: Plan) -> Training:
    """Return the training of a plan, which docs/guide-training.md describes."""
    return Training(
        plan.choice.network,
        plan,
        plan.updates,
        end="max_seconds, by the time that has passed",
        learning_rate=plan.choice.network.learning_rate,
        attention="softmax",
        dropout=[plan.dropout_line],
        attention_warmup=[],
        limits=plan.settings,
    )


def training_by_rows(rows: int, network: Network = DEFAULT, updates: int | None = None) -> Training:
    """Return the training without a plan.

    Args:
        rows: of the training data, with hallucinated ones.
        network: to train.
        updates: of the training; None: as many passes over the rows as `_PASSES` says, or more.
    """
    if updates is None:
        multiples = math.ceil(_PASSES * rows / (network.batch * _MULTIPLE))
        updates = max(_FEWEST_UPDATES, multiples * _MULTIPLE)  # more passes over few rows
    every = max(updates // _VALIDATIONS, 1)
    epochs = counted(round(updates * network.batch / rows), "epoch")
    return Training(
        network,
        None,
        updates,
        end="train_steps: lower these rather than set early_stopping",
        learning_rate=0.0014,
        attention="entmax15",
        dropout=[],
        attention_warmup=[
            explained(f"attention_warmup_steps: {updates // 4}", "attention starts as softmax")
        ],
        limits=[
            explained(f"train_steps: {updates}", f"about {epochs} of {counted(rows, 'row')}"),
            f"valid_steps: {every}",
            f"save_checkpoint_steps: {every}",
        ],
    )


def configuration(
    out: Path,
    training: Training,
    *,
    rows: int,
    invented: int = 0,
    languages: int,
    commands: Sequence[str],
    task: Sequence[str] = (),
) -> str:
    """Return the text of a configuration that trains a model.

    Args:
        out: the folder that is filled.
        training: of `planned_training` or `training_by_rows`.
        rows: of the training data.
        invented: hallucinated pairs to train on, too.
        languages: how many there are.
        commands: for the comment at its head.
        task: lines that say what the model reads and writes.
    """
    network = training.network
    selection = "exact_match" if languages == 1 else "macro_accuracy"
    settings = [
        *task,
        "",
        "encoder_type: brnn",
        *(f"{name}: {number}" for name, number in network.sizes.items()),
        f"global_attention_function: {training.attention}",
        "generator_function: entmax15",
        *training.dropout,
        "",
        "optim: adam",
        f"learning_rate: {training.learning_rate}",
        explained("decay_method: cosine", f"to 0 at {training.end}"),
        f"warmup_steps: {min(_WARMUP, max(training.updates // 5, 1))}",
        *training.attention_warmup,
        f"batch_size: {network.batch}",
        *training.limits,
        explained("keep_checkpoint: 1", "beside the best"),
        explained(f"selection: {selection}", "measure of the best checkpoint"),
        "seed: 1",
        "",
    ]
    corpora = {"words": "train", "valid": "dev"}
    weights: dict[str, int] = {}
    if invented:
        corpora = {"words": "train", HALLUCINATED: HALLUCINATED, "valid": "dev"}
        # Else the smaller corpus would be read several times while the larger one is read once.
        weights = mixture(rows, invented)
    data = {name: (out / f"{split}.src", out / f"{split}.tgt") for name, split in corpora.items()}
    return training_file(data, out / "model", settings, commands, training.plan, weights)


def mixture(rows: int, invented: int) -> dict[str, int]:
    """Return the weights with which both corpora end together, nearly; none if they are equal.

    Of 300 rows and 100 invented pairs, three rows are read, then one pair, then three rows, ...

    Args:
        rows: of the training data.
        invented: hallucinated pairs.
    """
    least = Fraction(1, _LARGEST_WORDS_WEIGHT)
    ratio = Fraction(invented, rows).limit_denominator(_LARGEST_WORDS_WEIGHT) or least
    if ratio == 1:
        return {}
    return {"words": ratio.denominator, HALLUCINATED: ratio.numerator}
