"""The systems that `tools.bench.peers` compares: how each one is trained and decodes.

All of them read the tokens that `onmt-entmax prepare table` writes, so their data are the same.
Each peer is installed in a virtual environment of its own, and runs as its own command.

The peers' settings are those of their examples for short strings, as far as there are any:

- yoyodyne: `tests/testdata/configs` of its repository, with which its tests learn Turkish
  inflection and Icelandic pronunciation: an LSTM of 256 states and embeddings of 64 on both sides,
  Adam at 0.01, batches of 100, label smoothing 0.1, gradients clipped at 3.
- Joey NMT: `configs/rnn_reverse.yaml`, which reverses short strings: one layer, Adam at 0.001, its
  initialisation and attention; but the sizes of yoyodyne and batches of 32, since its 64 states are
  too few for words. Its schedule, `plateau`, fails with PyTorch 2.13, whose scheduler has no
  `verbose`, so the rate is constant.
- Eole: its recipes are large Transformers for GPUs. Its defaults (recurrent, dropout 0.3, batches
  of 64), with the learning rate that its help recommends for Adam, one layer, and yoyodyne's sizes.

No peer plans for a time. Each validates after so many training examples, on a sample of the
development set, and its own validation chooses the checkpoint.
"""

from __future__ import annotations

import csv
import json
import random
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, ClassVar

from safetensors import safe_open

from onmt_entmax.checkpoint import CheckpointError, find_model
from onmt_entmax.files import read_lines
from onmt_entmax.options.reader import read_yaml
from onmt_entmax.strings.task import INFLECTION

LOG = "train.log"  # of a system's folder
VALIDATE_EVERY = 2_000  # training examples, for the peers
VALIDATE_ON = 200  # pairs of the development set, for the peers
BEAM = 5
_SIZE, _EMBEDDING = 256, 64
_ENDLESS = 1_000_000  # updates or epochs: the time ends a training

# Load on the machine slows every system, but only ours plans by a clock, so it gets one that stands
# still while other processes run.
_BY_PROCESSOR_TIME = (
    "import sys, time; time.monotonic = time.process_time; "
    "from onmt_entmax.cli.main import main; sys.exit(main())"
)
OURS = (sys.executable, "-c", _BY_PROCESSOR_TIME)


class PeerError(Exception):
    """A system that cannot be measured; the message says why in one line."""


@dataclass(frozen=True)
class Data:
    """Files of tokens that `prepare table` wrote, and a sample of the development set.

    Attributes:
        folder: of `train`, `dev`, `valid` and `one`, each `.src` and `.tgt`.
        tables: the options of `prepare table` that name the user's tables.
    """

    folder: Path
    tables: Sequence[str] = ()

    def path(self, split: str, side: str) -> Path:
        """Return the path of a file."""
        return self.folder / f"{split}.{side}"

    def lines(self, split: str, side: str) -> list[str]:
        """Return the lines of a file, tokens between spaces."""
        return [line.rstrip("\n") for line in read_lines(self.path(split, side))]

    def write_samples(self) -> None:
        """Write `valid`, on which the peers validate, and `one`, the first pair of `dev`."""
        pairs = list(zip(self.lines("dev", "src"), self.lines("dev", "tgt"), strict=True))
        some = random.Random(1).sample(pairs, min(VALIDATE_ON, len(pairs)))
        for split, sample in (("valid", some), ("one", pairs[:1])):
            for side, lines in zip(("src", "tgt"), zip(*sample, strict=True), strict=True):
                text = "".join(f"{line}\n" for line in lines)
                self.path(split, side).write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class Command:
    """A command, with files for its standard input and output."""

    words: Sequence[str]
    stdin: Path | None = None
    stdout: Path | None = None


class System(ABC):
    """A system in a folder of its own.

    Attributes:
        name: in the table.
        distribution: whose version is printed.
        install: what follows `pip install` in its environment, and what to do after it.
        environment: the name of its virtual environment; empty for the one of this process.
        settings: for people.
        batch: training pairs of an update.
    """

    name: ClassVar[str]
    distribution: ClassVar[str]
    install: ClassVar[str] = ""
    environment: ClassVar[str] = ""
    settings: str = ""
    batch: int = 0

    def __init__(self, data: Data, folder: Path, peers: Path | None, minutes: float) -> None:
        self.data, self.folder, self.minutes = data, folder, minutes
        self.bin = None if peers is None else peers / self.environment / "bin"

    @property
    def how(self) -> str:
        """How to install it."""
        environment = f"PEERS/{self.environment}"
        return f"python3 -m venv {environment} && {environment}/bin/pip install {self.install}"

    @property
    def python(self) -> str:
        """The Python of its environment.

        Raises:
            PeerError: there is none.
        """
        if not self.environment:
            return sys.executable
        if self.bin is None or not (self.bin / "python").exists():
            raise PeerError(f"not installed: {self.how}")
        return str(self.bin / "python")

    @property
    def log(self) -> str:
        """What the training printed."""
        return (self.folder / LOG).read_text(encoding="utf-8", errors="replace")

    def script(self, name: str) -> str:
        """Return the path of a command of its environment."""
        return str(Path(self.python).parent / name)

    def write_configuration(self, name: str, content: Mapping[str, Any]) -> Path:
        """Write a file of YAML, of which JSON is a part; return its path."""
        path = self.folder / name
        path.write_text(json.dumps(content, indent=2), encoding="utf-8")
        return path

    @abstractmethod
    def prepare(self) -> list[Command]:
        """Write its files; return the commands that must run before the training, untimed."""

    @abstractmethod
    def train(self) -> Command:
        """Return the command that trains until its time is over."""

    @abstractmethod
    def updates(self) -> int:
        """Return the updates that the training made, at least those that it tells."""

    @abstractmethod
    def parameters(self) -> int:
        """Return the number of weights."""

    @abstractmethod
    def decode(self, source: Path, output: Path) -> Command:
        """Return the command that writes a line of tokens for each line of a source.

        Raises:
            PeerError: there is no checkpoint.
        """

    def predictions(self, output: Path) -> list[str]:
        """Return the tokens, between spaces, that `decode` wrote for each line."""
        return [" ".join(line.split()) for line in read_lines(output)]


class Ours(System):
    """onmt_entmax, by `prepare table --minutes`, whose plan is part of what is measured."""

    name = "onmt_entmax"
    distribution = "onmt_entmax"

    def prepare(self) -> list[Command]:
        """Measure this machine for half a minute, and write a plan."""
        words = [*OURS, "prepare", "table", *self.data.tables, "--out", str(self.folder)]
        return [Command([*words, "--minutes", f"{self.minutes:g}"])]

    def train(self) -> Command:
        """Train by the plan, which ends in time."""
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
        total = 0
        with safe_open(self._model() / "model.safetensors", "pt") as weights:
            for name in weights.keys():  # noqa: SIM118 (it is no mapping)
                total += prod(weights.get_slice(name).get_shape())
        return total

    def _model(self) -> Path:
        try:
            return find_model(self.folder / "model")
        except CheckpointError as error:
            raise PeerError(str(error)) from None

    def decode(self, source: Path, output: Path) -> Command:
        """Decode with certificates, as users do."""
        words = ["translate", "-model", str(self._model()), "-beam_size", str(BEAM)]
        return Command([*OURS, *words, "-src", str(source), "-output", str(output)])


class Yoyodyne(System):
    """An attentional LSTM of yoyodyne."""

    name = "yoyodyne"
    distribution = "yoyodyne"
    environment = "yoyodyne"
    install = (
        "yoyodyne==0.5.27; then pip uninstall torchvision torchaudio, which do not fit a PyTorch "
        "for the CPU"
    )
    settings = (
        f"SoftAttentionLSTM, shared encoder of tags, 1 of {_SIZE}, embeddings {_EMBEDDING}, Adam "
        "0.01, label smoothing 0.1, batches of 100 (its tests' settings)"
    )
    batch = 100

    def prepare(self) -> list[Command]:
        """Write tables and a configuration."""
        for split in ("train", "valid"):
            self._write_table(self.folder / f"{split}.tsv", split)
        self.write_configuration("config.yaml", self._configuration())
        return []

    def _write_table(self, path: Path, split: str) -> None:
        sources, targets = (self.data.lines(split, side) for side in ("src", "tgt"))
        self._write_rows(path, sources, targets)

    def _write_rows(self, path: Path, sources: Sequence[str], targets: Sequence[str]) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            for source, target in zip(sources, targets, strict=True):
                marks, units = divided(source)
                writer.writerow([" ".join(units), target, " ".join(marks)])

    @property
    def _has_marks(self) -> bool:
        return bool(divided(self.data.lines("train", "src")[0])[0])

    def _model(self) -> dict[str, Any]:
        encoder = {
            "class_path": "yoyodyne.models.modules.LSTMEncoder",
            "init_args": {"dropout": 0.2, "embedding_size": _EMBEDDING, "hidden_size": _SIZE},
        }
        return {
            "class_path": "yoyodyne.models.SoftAttentionLSTMModel",
            "init_args": {
                "source_encoder": encoder,
                "features_encoder": self._has_marks,
                "decoder_dropout": 0.2,
                "decoder_hidden_size": _SIZE,
                "embedding_size": _EMBEDDING,
                "label_smoothing": 0.1,
                "optimizer": {"class_path": "torch.optim.Adam", "init_args": {"lr": 0.01}},
            },
        }

    def _configuration(self) -> dict[str, Any]:
        return {
            "seed_everything": 1,
            "model": self._model(),
            "data": self._data(),
            "trainer": {
                "accelerator": "cpu",
                "devices": 1,
                "default_root_dir": str(self.folder),
                "max_epochs": _ENDLESS,
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

    def decode(self, source: Path, output: Path) -> Command:
        """Decode with the beam of all systems."""
        checkpoints = list((self.folder / "checkpoints").glob("*.ckpt"))
        if not checkpoints:
            raise PeerError("no checkpoint in this time")
        # The accuracy ends the name. There are two if the training was ended before it removed one.
        best = max(checkpoints, key=lambda path: path.stem.rpartition("=")[2])
        table = output.with_suffix(".tsv")
        lines = [line.rstrip("\n") for line in read_lines(source)]
        self._write_rows(table, lines, [""] * len(lines))
        configuration = self._configuration()
        configuration["model"]["init_args"]["beam_width"] = BEAM
        configuration["data"] |= {"train": None, "val": None, "predict": str(table)}
        configuration["data"] |= {"target_col": 0}
        configuration["prediction"] = {"path": str(output)}
        path = self.write_configuration("predict.yaml", configuration)
        words = ["predict", "--config", str(path), "--ckpt_path", str(best)]
        return Command([self.script("yoyodyne"), *words])

    def predictions(self, output: Path) -> list[str]:
        """Take the first column, the best of the beam."""
        with output.open(encoding="utf-8", newline="") as file:
            return [" ".join(row[0].split()) for row in csv.reader(file, delimiter="\t")]


class YoyodynePointer(Yoyodyne):
    """The pointer-generator of yoyodyne, which it recommends where both sides share symbols."""

    name = "yoyodyne, pointer"
    settings = (
        f"PointerGeneratorLSTM, separate encoder of tags, 1 of {_SIZE}, embeddings {_EMBEDDING}, "
        "Adam 0.01, label smoothing 0.1, batches of 100 (its tests' settings)"
    )

    def _model(self) -> dict[str, Any]:
        model = super()._model()
        options = model["init_args"]
        model["class_path"] = "yoyodyne.models.PointerGeneratorLSTMModel"
        if self._has_marks:
            options["features_encoder"] = json.loads(json.dumps(options["source_encoder"]))
            options["source_encoder"]["init_args"]["hidden_size"] = 2 * _SIZE
        return model


class JoeyNMT(System):
    """Joey NMT's recurrent model."""

    name = "Joey NMT"
    distribution = "joeynmt"
    environment = "joeynmt"
    install = "joeynmt==2.3.0 importlib_metadata, which it needs and does not name"
    settings = (
        f"LSTM, 1 of {_SIZE}, embeddings {_EMBEDDING}, Luong attention, Adam 0.001, batches of 32 "
        "(rnn_reverse.yaml, larger)"
    )
    batch = 32

    def prepare(self) -> list[Command]:
        """Write a configuration."""
        every = 10 * round(VALIDATE_EVERY / self.batch / 10)
        side = {"level": "word", "max_length": 200, "voc_min_freq": 1}
        layer = {
            "type": "recurrent",
            "rnn_type": "lstm",
            "embeddings": {"embedding_dim": _EMBEDDING, "scale": False},
            "hidden_size": _SIZE,
            "dropout": 0.1,
            "num_layers": 1,
        }
        configuration = {
            "name": "peers",
            "joeynmt_version": "2.3.0",
            "model_dir": str(self.folder / "model"),
            "use_cuda": False,
            "fp16": False,
            "random_seed": 1,
            "data": {
                "train": str(self.data.folder / "train"),
                "dev": str(self.data.folder / "valid"),
                "dataset_type": "plain",
                "src": {"lang": "src", **side},
                "trg": {"lang": "tgt", **side},
            },
            "testing": {
                "beam_size": BEAM,
                "beam_alpha": 1.0,
                "n_best": 1,
                "batch_size": 64,
                "batch_type": "sentence",
                "max_output_length": 100,
                "eval_metrics": ["sequence_accuracy"],
            },
            "training": {
                "optimizer": "adam",
                "learning_rate": 0.001,
                "clip_grad_norm": 1.0,
                "batch_size": self.batch,
                "batch_type": "sentence",
                "scheduling": "exponential",
                "decrease_factor": 1.0,  # constant: it demands a schedule
                "early_stopping_metric": "acc",
                "epochs": _ENDLESS,
                "validation_freq": every,
                "logging_freq": 10,
                "print_valid_sents": [],
                "keep_best_ckpts": 1,
            },
            "model": {
                "initializer": "xavier_uniform",
                "embed_initializer": "normal",
                "embed_init_weight": 0.1,
                "bias_initializer": "zeros",
                "init_rnn_orthogonal": False,
                "lstm_forget_gate": 0.0,
                "encoder": {**layer, "bidirectional": True},
                "decoder": {
                    **layer,
                    "hidden_dropout": 0.1,
                    "input_feeding": True,
                    "init_hidden": "zero",
                    "attention": "luong",
                },
            },
        }
        self.write_configuration("config.yaml", configuration)
        return []

    def _command(self, mode: str, *more: str, **files: Path) -> Command:
        words = [self.python, "-m", "joeynmt", mode, str(self.folder / "config.yaml"), *more]
        return Command(words, **files)

    def train(self) -> Command:
        """Train until it is stopped."""
        return self._command("train", "--skip-test")

    def updates(self) -> int:
        """Read the updates off the last line that tells them."""
        return last_number(r"Step:\s+(\d+)", self.log)

    def parameters(self) -> int:
        """Read the number off the log."""
        return last_number(r"Total params: (\d+)", self.log)

    def decode(self, source: Path, output: Path) -> Command:
        """Decode with the best checkpoint, which it finds."""
        if not (self.folder / "model" / "best.ckpt").exists():
            raise PeerError("no checkpoint in this time")
        return self._command("translate", stdin=source, stdout=output)


class Eole(System):
    """Eole's recurrent model."""

    name = "Eole"
    distribution = "eole"
    environment = "eole"
    install = "eole==0.6.4 aiohttp, which it needs and does not name"
    settings = (
        f"LSTM, 1 of {_SIZE}, embeddings {_EMBEDDING}, Adam 0.001, dropout 0.3, batches of 64 "
        "(its defaults, smaller)"
    )
    batch = 64
    every = round(VALIDATE_EVERY / batch)  # updates

    def prepare(self) -> list[Command]:
        """Write a configuration, and count the vocabulary."""
        corpora = {
            name: {
                "path_src": str(self.data.path(split, "src")),
                "path_tgt": str(self.data.path(split, "tgt")),
            }
            for name, split in (("corpus", "train"), ("valid", "valid"))
        }
        configuration = {
            "seed": 1,
            "save_data": str(self.folder / "data"),
            "src_vocab": str(self.folder / "vocab.src"),
            "tgt_vocab": str(self.folder / "vocab.tgt"),
            "overwrite": True,
            "report_every": 10,
            "data": corpora,
            "training": {
                "model_path": str(self.folder / "model"),
                "world_size": 1,
                "gpu_ranks": [],
                "num_workers": 0,
                "optim": "adam",
                "learning_rate": 0.001,
                "batch_size": self.batch,
                "train_steps": _ENDLESS,
                "valid_steps": self.every,
                "save_checkpoint_steps": self.every,
                "log_attention_entropy": False,
            },
            "model": {
                "architecture": "rnn",
                "layers": 1,
                "hidden_size": _SIZE,
                "encoder": {"encoder_type": "brnn"},
                "embeddings": {"word_vec_size": _EMBEDDING},
            },
        }
        path = self.write_configuration("config.yaml", configuration)
        words = ["build_vocab", "-config", str(path), "-n_sample", "-1"]  # of all pairs
        return [Command([self.script("eole"), *words])]

    def train(self) -> Command:
        """Train until it is stopped."""
        config = str(self.folder / "config.yaml")
        return Command([self.script("eole"), "train", "-config", config])

    def updates(self) -> int:
        """Read the updates off the last line that tells them."""
        return last_number(r"Step (\d+)\s*/", self.log)

    def parameters(self) -> int:
        """Read the number off the log."""
        return last_number(r"number of parameters: (\d+)", self.log)

    def decode(self, source: Path, output: Path) -> Command:
        """Decode with the checkpoint of the best accuracy."""
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
        """Return the saved checkpoint of the best validation, which its log tells."""
        values = map(float, re.findall(r"Validation accuracy: ([\d.]+)", self.log))
        saved = [
            (value, number * self.every)
            for number, value in enumerate(values, 1)
            if (self.folder / "model" / f"step_{number * self.every}" / "config.json").exists()
        ]
        if not saved:
            raise PeerError("no checkpoint in this time")
        return self.folder / "model" / f"step_{max(saved)[1]}"


SYSTEMS: Sequence[type[System]] = (Ours, Yoyodyne, YoyodynePointer, JoeyNMT, Eole)


def divided(source: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the marks (language and tags) and the units of a source."""
    return INFLECTION.divided(source.split())


def last_number(pattern: str, text: str) -> int:
    """Return the last number of a log that follows a pattern; 0 if there is none."""
    numbers = re.findall(pattern, text)
    return int(numbers[-1].replace(",", "")) if numbers else 0
