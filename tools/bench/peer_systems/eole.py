"""Eole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tools.bench.peer_systems.system import (
    BEAM,
    EMBEDDING,
    ENDLESS,
    SIZE,
    VALIDATE_EVERY,
    Command,
    PeerError,
    System,
    last_number,
)


class Eole(System):
    """Eole's recurrent model."""

    name = "Eole"
    distribution = "eole"
    environment = "eole"
    packages = ("eole==0.6.4", "aiohttp")  # it imports aiohttp without requiring it
    settings = (
        f"LSTM, 1 of {SIZE}, embeddings {EMBEDDING}, Adam 0.001, dropout 0.3, batches of 64 "
        "(its defaults, smaller)"
    )
    batch = 64
    every = round(VALIDATE_EVERY / batch)  # updates

    def prepare(self) -> list[Command]:
        """Write a configuration; return the command that counts the vocabulary."""
        configuration = {
            "seed": 1,
            "save_data": str(self.folder / "data"),
            "src_vocab": str(self.folder / "vocab.src"),
            "tgt_vocab": str(self.folder / "vocab.tgt"),
            "overwrite": True,
            "report_every": 10,
            "data": self._data(),
            "training": self._training(),
            "model": {
                "architecture": "rnn",
                "layers": 1,
                "hidden_size": SIZE,
                "encoder": {"encoder_type": "brnn"},
                "embeddings": {"word_vec_size": EMBEDDING},
            },
        }
        path = self.write_configuration("config.yaml", configuration)
        words = ["build_vocab", "-config", str(path), "-n_sample", "-1"]  # of all pairs
        return [Command([self.script("eole"), *words])]

    def _data(self) -> dict[str, Any]:
        """Return the part of the configuration for the files."""
        return {
            name: {
                "path_src": str(self.data.path(split, "src")),
                "path_tgt": str(self.data.path(split, "tgt")),
            }
            for name, split in (("corpus", "train"), ("valid", "valid"))
        }

    def _training(self) -> dict[str, Any]:
        """Return the part of the configuration for the training."""
        return {
            "model_path": str(self.folder / "model"),
            "world_size": 1,
            "gpu_ranks": [],
            "num_workers": 0,
            "optim": "adam",
            "learning_rate": 0.001,
            "batch_size": self.batch,
            "train_steps": ENDLESS,
            "valid_steps": self.every,
            "save_checkpoint_steps": self.every,
            "log_attention_entropy": False,
        }

    def train(self) -> Command:
        """Return the command that trains until it is stopped."""
        config = str(self.folder / "config.yaml")
        return Command([self.script("eole"), "train", "-config", config])

    def updates(self) -> int:
        """Read the number in the last line about a step."""
        return last_number(r"Step (\d+)\s*/", self.log)

    def parameters(self) -> int:
        """Read the number off the log."""
        return last_number(r"number of parameters: (\d+)", self.log)

    def decode(self, source: Path, output: Path) -> Command:
        """Return the command that decodes with the checkpoint of the best accuracy."""
        configuration = {
            "model_path": str(self._best()),
            "src": str(source),
            "output": str(output),
            "beam_size": BEAM,
            "batch_size": 64,
        }
        path = self.write_configuration("predict.yaml", configuration)
        return Command([self.script("eole"), "predict", "-config", str(path)])

    def _best(self) -> Path:
        """Return the saved checkpoint of the best validation in the log.

        Raises:
            PeerError: there is no checkpoint.
        """
        values = map(float, re.findall(r"Validation accuracy: ([\d.]+)", self.log))
        saved = [
            (value, number * self.every)
            for number, value in enumerate(values, 1)
            if (self.folder / "model" / f"step_{number * self.every}" / "config.json").exists()
        ]
        if not saved:
            raise PeerError("no checkpoint in this time")
        return self.folder / "model" / f"step_{max(saved)[1]}"
