"""The configuration that `prepare` writes for a table of strings."""

import argparse
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from onmt_entmax.cli.plans import LEARNING_RATE, Network, Plan, explained
from onmt_entmax.cli.training_file import training_file
from onmt_entmax.errors import counted

HALLUCINATED = "hallucinated"  # corpus of invented pairs, and its files
DEFAULT = Network(layers=2, size=300, batch=32)  # without --minutes


def network_of(options: argparse.Namespace) -> Network:
    """Return the network without a plan: the default one, with the sizes that the user names."""
    return Network(
        options.layers or DEFAULT.layers,
        options.size or DEFAULT.size,
        options.batch or DEFAULT.batch,
    )


def configuration(
    out: Path,
    rows: int,
    invented: int = 0,
    *,
    languages: int,
    commands: Sequence[str],
    task: Sequence[str] = (),
    steps: int | None = None,
    network: Network = DEFAULT,
    plan: Plan | None = None,
) -> str:
    """Return the text of a configuration that trains a model.

    Args:
        out: the folder that is filled.
        rows: of the training data.
        invented: hallucinated pairs to train on, too.
        languages: how many there are.
        commands: for the comment at its head.
        task: lines that say what the model reads and writes.
        steps: number of updates without a plan; None: by the number of rows.
        network: without a plan.
        plan: for a time.
    """
    network = plan.choice.network if plan else network
    rows += invented
    if plan:
        steps, limits = plan.updates, plan.settings
        attention, dropout, warmup = "softmax", [plan.dropout_line], []
        end = "max_seconds, by the time that has passed"
    else:
        # More passes over few rows.
        steps = steps or max(4000, -(-40 * rows // (network.batch * 500)) * 500)
        epochs = counted(round(steps * network.batch / rows), "epoch")
        attention, dropout = "entmax15", []
        warmup = [explained(f"attention_warmup_steps: {steps // 4}", "attention starts as softmax")]
        end = "train_steps: lower these rather than set early_stopping"
        every = max(steps // 20, 1)
        limits = [
            explained(f"train_steps: {steps}", f"about {epochs} of {counted(rows, 'row')}"),
            f"valid_steps: {every}",
            f"save_checkpoint_steps: {every}",
        ]
    selection = "exact_match" if languages == 1 else "macro_accuracy"
    corpora = {"words": "train", **({HALLUCINATED: HALLUCINATED} if invented else {})}
    data = {
        name: (out / f"{split}.src", out / f"{split}.tgt")
        for name, split in {**corpora, "valid": "dev"}.items()
    }
    settings = [
        "encoder_type: brnn",
        f"layers: {network.layers}",
        f"rnn_size: {network.size}",
        f"word_vec_size: {network.size}",
        f"global_attention_function: {attention}",
        "generator_function: entmax15",
        *dropout,
        "",
        "optim: adam",
        f"learning_rate: {LEARNING_RATE if plan else 0.0014}",
        explained("decay_method: cosine", f"to 0 at {end}"),
        f"warmup_steps: {min(300, max(steps // 5, 1))}",
        *warmup,
        f"batch_size: {network.batch}",
        *limits,
        explained("keep_checkpoint: 1", "beside the best"),
        explained(f"selection: {selection}", "measure of the best checkpoint"),
        "seed: 1",
        "",
    ]
    # Else the smaller corpus would be read several times while the larger one is read once.
    weights = mixture(rows - invented, invented) if invented else {}
    return training_file(data, out / "model", [*task, "", *settings], commands, plan, weights)


def mixture(rows: int, invented: int) -> dict[str, int]:
    """Return the weights with which both corpora end together, nearly; none if they are equal.

    Args:
        rows: of the training data.
        invented: hallucinated pairs.
    """
    ratio = Fraction(invented, rows).limit_denominator(20) or Fraction(1, 20)
    words, pairs = ratio.denominator, ratio.numerator
    return {} if words == pairs else {"words": words, HALLUCINATED: pairs}
