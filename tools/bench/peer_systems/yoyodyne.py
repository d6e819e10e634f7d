"""Two networks of yoyodyne."""

from __future__ import annotations

import copy
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


class Yoyodyne(System):
    """An attentional LSTM of yoyodyne."""

    name = "yoyodyne"
    distribution = "yoyodyne"
    environment = "yoyodyne"
    packages = ("yoyodyne==0.5.27",)
    unwanted = ("torchvision", "torchaudio")  # they do not fit a PyTorch for the CPU
    settings = (
        f"SoftAttentionLSTM, shared encoder of tags, 1 of {SIZE}, embeddings {EMBEDDING}, Adam "
        "0.01, label smoothing 0.1, batches of 100 (its tests' settings)"
    )
    batch = 100

    def prepare(self) -> list[Command]:
        """Write tables and a configuration."""
        for split in ("train", "valid"):
            sources, targets = (self.data.lines(split, side) for side in ("src", "tgt"))
            self._write_rows(self.folder / f"{split}.tsv", sources, targets)
        self.write_configuration("config.yaml", self._configuration())
        return []

    def _write_rows(self, path: Path, sources: Sequence[str], targets: Sequence[str]) -> None:
        """Write a table: units of the source, target, language and tags of the source."""
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            for source, target in zip(sources, targets, strict=True):
                marks, units = marks_and_units(source)
                writer.writerow([" ".join(units), target, " ".join(marks)])

    @property
    def _has_marks(self) -> bool:
        """Whether sources have a language or tags."""
        return bool(marks_and_units(self.data.lines("train", "src")[0])[0])

    def _model(self) -> dict[str, Any]:
        """Return the part of the configuration for the network."""
        encoder = {
            "class_path": "yoyodyne.models.modules.LSTMEncoder",
            "init_args": {"dropout": 0.2, "embedding_size": EMBEDDING, "hidden_size": SIZE},
        }
        return {
            "class_path": "yoyodyne.models.SoftAttentionLSTMModel",
            "init_args": {
                "source_encoder": encoder,
                "features_encoder": self._has_marks,
                "decoder_dropout": 0.2,
                "decoder_hidden_size": SIZE,
                "embedding_size": EMBEDDING,
                "label_smoothing": 0.1,
                "optimizer": {"class_path": "torch.optim.Adam", "init_args": {"lr": 0.01}},
            },
        }

    def _configuration(self) -> dict[str, Any]:
        """Return the configuration of a training."""
        return {
            "seed_everything": 1,
            "model": self._model(),
            "data": self._data(),
            "trainer": {
                "accelerator": "cpu",
                "devices": 1,
                "default_root_dir": str(self.folder),
                "max_epochs": ENDLESS,
                "gradient_clip_val": 3,
                "val_check_interval": VALIDATE_EVERY // self.batch,
                "check_val_every_n_epoch": None,
                "num_sanity_val_steps": 0,
                "enable_progress_bar": False,
                "log_every_n_steps": VALIDATE_EVERY // self.batch,
            },
            "checkpoint": {
                "dirpath": str(self.folder / "checkpoints"),
                "filename": "{step}-{val_accuracy:.4f}",
                "monitor": "val_accuracy",
                "mode": "max",
                "verbose": True,
            },
        }

    def _data(self) -> dict[str, Any]:
        """Return the part of the configuration for the tables."""
        return {
            "model_dir": str(self.folder / "model"),
            "train": str(self.folder / "train.tsv"),
            "val": str(self.folder / "valid.tsv"),
            "source_sep": " ",
            "target_sep": " ",
            "features_sep": " ",
            "features_col": 3 if self._has_marks else 0,
            "batch_size": self.batch,
        }

    def train(self) -> Command:
        """Train until it is stopped."""
        return Command(
            [self.script("yoyodyne"), "fit", "--config", str(self.folder / "config.yaml")]
        )

    def updates(self) -> int:
        """Read the updates off the last validation."""
        return last_number(r"global step (\d+)", self.log)

    def parameters(self) -> int:
        """Read the number off the log."""
        return last_number(r"Trainable parameters: ([\d,]+)", self.log)

    def _best(self) -> Path:
        """Return the checkpoint of the best validation, whose accuracy ends its name.

        Raises:
            PeerError: there is no checkpoint.
        """
        checkpoints = list((self.folder / "checkpoints").glob("*.ckpt"))
        if not checkpoints:
            raise PeerError("no checkpoint in this time")
        # There are two if the training was ended before it removed one.
        return max(checkpoints, key=lambda path: float(path.stem.rpartition("=")[2]))

    def decode(self, source: Path, output: Path) -> Command:
        """Decode with the beam of all systems."""
        table = output.with_suffix(".tsv")
        lines = [line.rstrip("\n") for line in read_lines(source)]
        self._write_rows(table, lines, [""] * len(lines))
        configuration = self._configuration()
        configuration["model"]["init_args"]["beam_width"] = BEAM
        configuration["data"] |= {"train": None, "val": None, "predict": str(table)}
        configuration["data"]["target_col"] = 0  # there is none
        configuration["prediction"] = {"path": str(output)}
        path = self.write_configuration("predict.yaml", configuration)
        words = ["predict", "--config", str(path), "--ckpt_path", str(self._best())]
        return Command([self.script("yoyodyne"), *words])

    def predictions(self, output: Path) -> list[str]:
        """Take the first column, the best of the beam."""
        with output.open(encoding="utf-8", newline="") as file:
            return [" ".join(row[0].split()) for row in csv.reader(file, delimiter="\t")]


class YoyodynePointer(Yoyodyne):
    """The pointer-generator of yoyodyne, which it recommends where both sides share symbols."""

    name = "yoyodyne, pointer"
    settings = (
        f"PointerGeneratorLSTM, separate encoder of tags, 1 of {SIZE}, embeddings {EMBEDDING}, "
        "Adam 0.01, label smoothing 0.1, batches of 100 (its tests' settings)"
    )

    def _model(self) -> dict[str, Any]:
        """Return the part of the configuration for the network."""
        model = super()._model()
        options = model["init_args"]
        model["class_path"] = "yoyodyne.models.PointerGeneratorLSTMModel"
        if self._has_marks:
            options["features_encoder"] = copy.deepcopy(options["source_encoder"])
            options["source_encoder"]["init_args"]["hidden_size"] = 2 * SIZE
        return model


def marks_and_units(source: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the marks (language and tags) and the units of a source."""
    return INFLECTION.marks_and_units(source.split())
