"""Joey NMT."""

from __future__ import annotations

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


class JoeyNMT(System):
    """Joey NMT's recurrent model."""

    name = "Joey NMT"
    distribution = "joeynmt"
    environment = "joeynmt"
    packages = ("joeynmt==2.3.0", "importlib_metadata")  # which it imports without requiring it
    settings = (
        f"LSTM, 1 of {SIZE}, embeddings {EMBEDDING}, Luong attention, Adam 0.001, batches of 32 "
        "(rnn_reverse.yaml, larger)"
    )
    batch = 32

    def prepare(self) -> list[Command]:
        """Write a configuration; no command must run before the training."""
        configuration = {
            "name": "peers",
            "joeynmt_version": "2.3.0",
            "model_dir": str(self.folder / "model"),
            "use_cuda": False,
            "fp16": False,
            "random_seed": 1,
            "data": self._data(),
            "testing": self._testing(),
            "training": self._training(),
            "model": self._model(),
        }
        self.write_configuration("config.yaml", configuration)
        return []

    def _data(self) -> dict[str, Any]:
        """Return the part of the configuration for the files."""
        side = {"level": "word", "max_length": 200, "voc_min_freq": 1}
        return {
            "train": str(self.data.folder / "train"),
            "dev": str(self.data.folder / "valid"),
            "dataset_type": "plain",
            "src": {"lang": "src", **side},
            "trg": {"lang": "tgt", **side},
        }

    def _testing(self) -> dict[str, Any]:
        """Return the part of the configuration for decoding, also in validations."""
        return {
            "beam_size": BEAM,
            "beam_alpha": 1.0,
            "n_best": 1,
            "batch_size": 64,
            "batch_type": "sentence",
            "max_output_length": 100,
            "eval_metrics": ["sequence_accuracy"],
        }

    def _training(self) -> dict[str, Any]:
        """Return the part of the configuration for the training."""
        logged = 10  # updates
        return {
            "optimizer": "adam",
            "learning_rate": 0.001,
            "clip_grad_norm": 1.0,
            "batch_size": self.batch,
            "batch_type": "sentence",
            "scheduling": "exponential",
            "decrease_factor": 1.0,  # constant: it demands a schedule
            "early_stopping_metric": "acc",
            "epochs": ENDLESS,
            "validation_freq": logged * round(VALIDATE_EVERY / self.batch / logged),
            "logging_freq": logged,
            "print_valid_sents": [],
            "keep_best_ckpts": 1,
        }

    def _model(self) -> dict[str, Any]:
        """Return the part of the configuration for the network."""
        layer = {
            "type": "recurrent",
            "rnn_type": "lstm",
            "embeddings": {"embedding_dim": EMBEDDING, "scale": False},
            "hidden_size": SIZE,
            "dropout": 0.1,
            "num_layers": 1,
        }
        return {
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
        }

    def _command(self, mode: str, *more: str, **files: Path) -> Command:
        """Return a command of Joey NMT; `files` are `stdin` and `stdout` of `Command`."""
        words = [self.python, "-m", "joeynmt", mode, str(self.folder / "config.yaml"), *more]
        return Command(words, **files)

    def train(self) -> Command:
        """Return the command that trains until it is stopped."""
        return self._command("train", "--skip-test")

    def updates(self) -> int:
        """Read the number in the last line about a step."""
        return last_number(r"Step:\s+(\d+)", self.log)

    def parameters(self) -> int:
        """Read the number off the log."""
        return last_number(r"Total params: (\d+)", self.log)

    def decode(self, source: Path, output: Path) -> Command:
        """Return the command that decodes; Joey NMT finds its best checkpoint."""
        if not (self.folder / "model" / "best.ckpt").exists():
            raise PeerError("no checkpoint in this time")
        return self._command("translate", stdin=source, stdout=output)
