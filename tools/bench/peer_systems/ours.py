"""This package, as users train it in a given time."""

from __future__ import annotations

import json
import sys
from math import prod
from pathlib import Path

from safetensors import safe_open

from onmt_entmax.checkpoint import CheckpointError, find_model
from onmt_entmax.files import read_lines
from onmt_entmax.options.reader import read_yaml
from tools.bench.peer_systems.system import BEAM, Command, PeerError, System

# Load on the machine slows every system, but only ours plans by a clock, so it gets one that stands
# still while other processes run.
_BY_PROCESSOR_TIME = (
    "import sys, time; time.monotonic = time.process_time; "
    "from onmt_entmax.cli.main import main; sys.exit(main())"
)
OURS = (sys.executable, "-c", _BY_PROCESSOR_TIME)


class Ours(System):
    """onmt_entmax, by `prepare table --minutes`, whose plan is part of what is measured."""

    name = "onmt_entmax"
    distribution = "onmt_entmax"

    def prepare(self) -> list[Command]:
        """Return the command that measures this machine for half a minute, and writes a plan."""
        words = [*OURS, "prepare", "table", *self.data.tables, "--out", str(self.folder)]
        return [Command([*words, "--minutes", f"{self.minutes:g}"])]

    def train(self) -> Command:
        """Return the command that trains by the plan; set `settings` and `batch` from the plan."""
        plan = read_yaml(str(self.folder / "train.yaml"))
        self.batch = int(plan["batch_size"])
        products = plan.get("matmul_dtype", "float32")
        self.settings = (
            f"`prepare table --minutes {self.minutes:g}`: LSTM, {plan['layers']} of "
            f"{plan['rnn_size']}, batches of {self.batch}, {products}"
        )
        return Command([*OURS, "train", "-config", str(self.folder / "train.yaml")])

    def updates(self) -> int:
        """Read the updates off the run's measurements."""
        *_, last = read_lines(self.folder / "model" / "metrics.jsonl")
        return int(json.loads(last)["step"])

    def parameters(self) -> int:
        """Add up the shapes of the weights."""
        with safe_open(self._model() / "model.safetensors", "pt") as weights:
            names = weights.keys()
            return sum(prod(weights.get_slice(name).get_shape()) for name in names)

    def _model(self) -> Path:
        """Return the folder of the best checkpoint.

        Raises:
            PeerError: there is none.
        """
        try:
            return find_model(self.folder / "model")
        except CheckpointError as error:
            raise PeerError(str(error)) from None

    def decode(self, source: Path, output: Path) -> Command:
        """Decode with certificates, as users do."""
        words = ["translate", "-model", str(self._model()), "-beam_size", str(BEAM)]
        return Command([*OURS, *words, "-src", str(source), "-output", str(output)])
