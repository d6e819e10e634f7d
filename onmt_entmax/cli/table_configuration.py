"""The configuration that `prepare` writes for a table of strings."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from onmt_entmax.cli.plan_lines import dropout_option, schedule_options
from onmt_entmax.cli.planned_networks import Network
from onmt_entmax.cli.plans import Plan
from onmt_entmax.cli.schedules import Schedule, decay_line, warmup_line
from onmt_entmax.cli.training_file import Corpus, training_file
from onmt_entmax.cli.yaml_lines import with_comment

HALLUCINATED = "hallucinated"  # corpus of hallucinated pairs, and its files
# Without --minutes: forty passes over the rows, or more over few rows.
_DEFAULT = Network(encoder_layers=2, decoder_layers=2, size=300, batch=32)
_SCHEDULE = Schedule(passes=40, fewest=4_000, most=float("inf"), multiple=500, validations=20)
_LEARNING_RATE = 0.0014
_WARMUP = 300  # updates, at most
_LARGEST_WORDS_WEIGHT = 20  # beside hallucinated pairs, which may be many times more


def network_of(options: argparse.Namespace) -> Network:
    """Return the network without a plan: the default one, with the sizes that the user names."""
    return Network(
        options.layers or _DEFAULT.encoder_layers,
        options.layers or _DEFAULT.decoder_layers,
        options.size or _DEFAULT.size,
        options.batch or _DEFAULT.batch,
    )


@dataclass(frozen=True)
class Training:
    """The part of a configuration that a plan or the number of rows decides.

    Attributes:
        network: lines of YAML for the network.
        schedule: lines of YAML for learning rate, batches, validations, checkpoints and the end.
        plan: plan for a time; None: the number of rows decides.
    """

    network: Sequence[str]
    schedule: Sequence[str]
    plan: Plan | None


def planned_training(plan: Plan) -> Training:
    """Return the training of a plan, which docs/guide-training.md describes."""
    network = plan.choice.network
    return Training(
        network=[*_network_lines(network, attention="softmax"), dropout_option(plan)],
        schedule=[
            *_optimiser_lines(network.learning_rate, plan.updates, planned=True),
            f"batch_size: {network.batch}",
            *schedule_options(plan),
        ],
        plan=plan,
    )


def training_by_rows(
    rows: int, network: Network = _DEFAULT, updates: int | None = None
) -> Training:
    """Return the training without a plan.

    Args:
        rows: number of training rows, hallucinated ones included.
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
        f"learning_rate: {learning_rate}",
        decay_line(planned=planned),
        warmup_line(updates, _WARMUP),
    ]


@dataclass(frozen=True, kw_only=True)
class TableConfiguration:
    """A configuration without its training.

    Attributes:
        out: folder of the data and of the configuration.
        rows: number of training rows.
        languages: number of languages.
        task: lines of YAML that say what the model reads and writes.
        commands: next commands, for the comment at its head.
    """

    out: Path
    rows: int
    languages: int
    task: Sequence[str]
    commands: Sequence[str] = ()

    def text(self, training: Training, hallucinated: int = 0) -> str:
        """Return the text of the file.

        Args:
            training: what `planned_training` or `training_by_rows` returns.
            hallucinated: number of pairs to train on besides the rows.
        """
        selection = "exact_match" if self.languages == 1 else "macro_accuracy"
        settings = [
            *self.task,
            "",
            *training.network,
            "",
            *training.schedule,
            with_comment("keep_checkpoint: 1", "beside the best"),
            with_comment(f"selection: {selection}", "measure of the best checkpoint"),
            "seed: 1",
            "",
        ]
        corpora = self._corpora(hallucinated)
        return training_file(corpora, self.out / "model", settings, self.commands, training.plan)

    def _corpora(self, hallucinated: int) -> dict[str, Corpus]:
        """Return the corpora by name, with the weights of those to train on."""
        files = {"words": "train"}
        weights: dict[str, int] = {}
        if hallucinated:
            files[HALLUCINATED] = HALLUCINATED
            # Else the smaller corpus would be read several times while the larger is read once.
            weights = corpus_weights(self.rows, hallucinated)
        files["valid"] = "dev"
        return {
            name: Corpus(self.out / f"{split}.src", self.out / f"{split}.tgt", weights.get(name))
            for name, split in files.items()
        }


def corpus_weights(rows: int, hallucinated: int) -> dict[str, int]:
    """Return weights with which both corpora are read once in about the same updates.

    With 300 rows and 100 hallucinated pairs, three rows are read, then one pair, then three rows,
    and so on. Equal weights are left out.

    Args:
        rows: number of training rows.
        hallucinated: number of pairs of the other corpus.
    """
    least = Fraction(1, _LARGEST_WORDS_WEIGHT)
    ratio = Fraction(hallucinated, rows).limit_denominator(_LARGEST_WORDS_WEIGHT) or least
    if ratio == 1:
        return {}
    return {"words": ratio.denominator, HALLUCINATED: ratio.numerator}
