"""Trainings that `prepare ... --minutes` plans from given speeds, without a measurement."""

from pathlib import Path
from typing import NamedTuple

from onmt_entmax.cli import prepare_files, prepare_sigmorphon
from onmt_entmax.config import TrainingSetup
from onmt_entmax.options.train import training_setup
from onmt_entmax.train.timing import Timed, ValidationSpeeds
from tests.commands import ROOT
from tests.in_process import Main, exit_status

# Pairs a second on which a network of one layer trains, times its size.
FLOAT32_SPEED = 100_000
BFLOAT16_SPEED = 2 * FLOAT32_SPEED  # fast enough to be chosen


class ConstantSpeeds:
    """Stands in for `timing.Stopwatch`: the smaller a network, the faster it trains.

    With these numbers, a network makes hundreds of passes over the training data in 15 minutes, and
    less than one in 0.01 minutes.

    Attributes:
        examples: the number of training pairs.
        development_pairs: the number of pairs of the development set.
    """

    examples = 1_000
    development_pairs = 100

    def __init__(self, data: object, vocabulary: object, device: object) -> None:
        """Read nothing."""

    def training_speeds(self, networks: list[Timed], seconds: float) -> list[float]:
        """Return the pairs a second of each network; at most half a minute is for measuring."""
        assert seconds <= 30
        speeds = {"float32": FLOAT32_SPEED, "bfloat16": BFLOAT16_SPEED}
        return [
            speeds[network.training.matmul_dtype]
            / network.model.rnn_size
            / network.model.enc_layers
            for network in networks
        ]

    def validation_speeds(self, network: Timed, validation: object) -> ValidationSpeeds:
        """Return speeds of a small machine."""
        return ValidationSpeeds(loss=3000.0, decoding=400.0)


class Command(NamedTuple):
    """A command that prepares a training, and its arguments but for `--out`."""

    main: Main
    arguments: list[str]


INFLECTION = Command(
    prepare_sigmorphon.main,
    ["--data", str(ROOT / "data" / "samples"), "--languages", "turkish"],
)
TRANSLATION = Command(  # of the pairs that `write_pairs` writes
    prepare_files.main,
    "--languages xx yy --train a.src a.tgt --val a.src a.tgt --symbols 30".split(),
)


def write_pairs() -> None:
    """Write 40 pairs of equal lines into the current folder."""
    lines = [f"{word} {word[::-1]}{n}" for n, word in enumerate(["tree", "house"] * 20)]
    for name in ("a.src", "a.tgt"):
        Path(name).write_text("\n".join(lines) + "\n")


def prepared(command: Command, *options: object) -> TrainingSetup:
    """Prepare the folder `out` with further options; return the training of its configuration."""
    arguments = [*command.arguments, *map(str, options), "--out", "out"]
    assert exit_status(command.main, arguments) == 0
    return training_setup(["-config", "out/train.yaml"])
