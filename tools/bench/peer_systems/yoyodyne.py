"""Two networks of yoyodyne: an attentional LSTM, and a pointer-generator.

Sizes and rates are those with which yoyodyne's own tests train, `tests/testdata/configs` there.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.files import read_lines
from onmt_entmax.strings.task import INFLECTION
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

DROPOUT = 0.2
LEARNING_RATE = 0.01
LABEL_SMOOTHING = 0.1
LARGEST_NORM = 3  # of gradients
# Columns of a table, counted from 1; for yoyodyne, 0 stands for a missing column.
FEATURES = 3
ABSENT = 0


class Yoyodyne(System):
    """An attentional LSTM, whose encoder reads tags as it reads the source."""

    name = "yoyodyne"
    distribution = "yoyodyne"
    environment = "yoyodyne"
    packages = ("yoyodyne==0.5.27",)
    unwanted = ("torchvision", "torchaudio")  # they do not fit a PyTorch for the CPU
    settings = (
        f"SoftAttentionLSTM, shared encoder of tags, 1 of {SIZE}, embeddings {EMBEDDING}, Adam "
        f"{LEARNING_RATE}, label smoothing {LABEL_SMOOTHING}, batches of 100 (its tests' settings)"
    )
    batch = 100
    network = "SoftAttentionLSTMModel"  # class of yoyodyne.models

    def prepare(self) -> list[Command]:
        """Write tables and a configuration; no command must run before the training."""
        tables = {}
        for split in ("train", "valid"):
            tables[split] = self.folder / f"{split}.tsv"
            sources, targets = (self.data.lines(split, side) for side in ("src", "tgt"))
            _write_table(tables[split], sources, targets)
        files = {"train": str(tables["train"]), "val": str(tables["valid"])}
        self.write_configuration("config.yaml", self._configuration(files))
        return []

    def train(self) -> Command:
        """Return the command that trains until it is stopped."""
        config = str(self.folder / "config.yaml")
        return Command([self.script("yoyodyne"), "fit", "--config", config])

    def updates(self) -> int:
        """Read the updates off the last validation."""
        return last_number(r"global step (\d+)", self.log)

    def parameters(self) -> int:
        """Read the number off the log."""
        return last_number(r"Trainable parameters: ([\d,]+)", self.log)

    def decode(self, source: Path, output: Path) -> Command:
        """Return the command that decodes with the checkpoint of the best validation."""
        table = output.with_suffix(".tsv")
        lines = [line.rstrip("\n") for line in read_lines(source)]
        _write_table(table, lines, [""] * len(lines))
        files = {"train": None, "val": None, "predict": str(table), "target_col": ABSENT}
        configuration = self._configuration(files)
        configuration["model"]["init_args"]["beam_width"] = BEAM
        configuration["prediction"] = {"path": str(output)}
        path = self.write_configuration("predict.yaml", configuration)
        words = ["predict", "--config", str(path), "--ckpt_path", str(self._best_checkpoint())]
        return Command([self.script("yoyodyne"), *words])

    def predictions(self, output: Path) -> list[str]:
        """Return the first column, the best outputs of the beam."""
        with output.open(encoding="utf-8", newline="") as file:
            return [" ".join(row[0].split()) for row in csv.reader(file, delimiter="\t")]

    def _best_checkpoint(self) -> Path:
        """Return the checkpoint of the best validation, whose accuracy ends its name.

        Raises:
            PeerError: there is no checkpoint.
        """
        checkpoints = list((self.folder / "checkpoints").glob("*.ckpt"))
        if not checkpoints:
            raise PeerError("no checkpoint in this time")
        # There are two if the training was ended before it removed one.
        return max(checkpoints, key=lambda path: float(path.stem.rpartition("=")[2]))

    def _configuration(self, files: dict[str, Any]) -> dict[str, Any]:
        """Return the configuration of a command.

        Args:
            files: tables by their use, and columns that differ from those of training.
        """
        return {
            "seed_everything": 1,
            "model": self._model(),
            "data": self._data() | files,
            "trainer": self._trainer(),
            "checkpoint": {
                "dirpath": str(self.folder / "checkpoints"),
                "filename": "{step}-{val_accuracy:.4f}",
                "monitor": "val_accuracy",
                "mode": "max",
                "verbose": True,
            },
        }

    def _model(self) -> dict[str, Any]:
        """Return the part of the configuration for the network."""
        return {
            "class_path": f"yoyodyne.models.{self.network}",
            "init_args": {
                **self._encoders(),
                "decoder_dropout": DROPOUT,
                "decoder_hidden_size": SIZE,
                "embedding_size": EMBEDDING,
                "label_smoothing": LABEL_SMOOTHING,
                "optimizer": {
                    "class_path": "torch.optim.Adam",
                    "init_args": {"lr": LEARNING_RATE},
                },
            },
        }

    def _encoders(self) -> dict[str, Any]:
        """Return the encoder of the source, and that of tags: true if it is the same."""
        return {"source_encoder": _lstm_encoder(SIZE), "features_encoder": self._has_marks}

    def _data(self) -> dict[str, Any]:
        """Return the part of the configuration for all tables."""
        return {
            "model_dir": str(self.folder / "model"),
            "source_sep": " ",
            "target_sep": " ",
            "features_sep": " ",
            "features_col": FEATURES if self._has_marks else ABSENT,
            "batch_size": self.batch,
        }

    def _trainer(self) -> dict[str, Any]:
        """Return the part of the configuration for the training."""
        every = VALIDATE_EVERY // self.batch  # updates
        return {
            "accelerator": "cpu",
            "devices": 1,
            "default_root_dir": str(self.folder),
            "max_epochs": ENDLESS,
            "gradient_clip_val": LARGEST_NORM,
            "val_check_interval": every,
            "check_val_every_n_epoch": None,
            "num_sanity_val_steps": 0,
            "enable_progress_bar": False,
            "log_every_n_steps": every,
        }

    @property
    def _has_marks(self) -> bool:
        """Whether sources have a language or tags, yoyodyne's features."""
        marks, _ = marks_and_units(self.data.lines("train", "src")[0])
        return bool(marks)


class YoyodynePointer(Yoyodyne):
    """The pointer-generator, which yoyodyne recommends where both sides share symbols.

    Tags have an encoder of their own, and that of the source then has twice the size, as in
    `pointer_generator_lstm_separate_features.yaml` of yoyodyne's tests.
    """

    name = "yoyodyne, pointer"
    settings = (
        f"PointerGeneratorLSTM, separate encoder of tags, 1 of {SIZE}, embeddings {EMBEDDING}, "
        f"Adam {LEARNING_RATE}, label smoothing {LABEL_SMOOTHING}, batches of 100 (its tests' "
        "settings)"
    )
    network = "PointerGeneratorLSTMModel"

    def _encoders(self) -> dict[str, Any]:
        """Return the encoder of the source, and that of tags if there are any."""
        if not self._has_marks:
            return super()._encoders()
        return {"source_encoder": _lstm_encoder(2 * SIZE), "features_encoder": _lstm_encoder(SIZE)}


def _lstm_encoder(hidden_size: int) -> dict[str, Any]:
    """Return the configuration of an encoder."""
    return {
        "class_path": "yoyodyne.models.modules.LSTMEncoder",
        "init_args": {
            "dropout": DROPOUT,
            "embedding_size": EMBEDDING,
            "hidden_size": hidden_size,
        },
    }


def _write_table(path: Path, sources: Sequence[str], targets: Sequence[str]) -> None:
    """Write a table whose columns are units of the source, target, and marks of the source.

    Args:
        path: path of the table.
        sources: lines of tokens, as `onmt-entmax prepare table` writes them.
        targets: lines of tokens; empty ones where none are known.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        for source, target in zip(sources, targets, strict=True):
            marks, units = marks_and_units(source)
            writer.writerow([" ".join(units), target, " ".join(marks)])


def marks_and_units(source: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the marks (language and tags) and the units of a source."""
    return INFLECTION.marks_and_units(source.split())
