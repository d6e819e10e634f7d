"""Small models that stock OpenNMT-py trains in this process, from lower case to upper case."""

import importlib
import random
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

DEV_SIZE = 40  # lines
UPDATES = 150  # after these, no two lines have the same output

# Options of every model.
SMALL = {
    "encoder_type": "brnn",
    "layers": 1,
    "rnn_size": 48,
    "word_vec_size": 24,
    "batch_size": 16,
    "optim": "adam",
    "learning_rate": 0.01,
    "dropout": 0.1,
    "param_init": 0,
    "param_init_glorot": True,
    "seed": 3,
}
# Changes of these options: each model has others that an import must read. Tokens that no line has
# pad the vocabularies of `recurrent`, `sparsemax` has sparse probabilities and a GRU, and
# `transformer` shares all embeddings.
MODELS = {
    "recurrent": {"layers": 2, "vocab_size_multiple": 8},
    "sparsemax": {
        "rnn_type": "GRU",
        "encoder_type": "rnn",
        "global_attention": "mlp",
        "global_attention_function": "sparsemax",
        "generator_function": "sparsemax",
    },
    "transformer": {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "layers": 2,
        "rnn_size": 32,
        "word_vec_size": 32,
        "heads": 4,
        "transformer_ff": 64,
        "position_encoding": True,
        "share_vocab": True,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "learning_rate": 0.005,
        "dropout": 0.0,
        "attention_dropout": 0.0,
    },
}


class StockModel(NamedTuple):
    """A model that stock OpenNMT-py has trained, and the folder that it was imported to."""

    name: str
    """The key of its options in `MODELS`."""
    folder: Path
    """It holds `stock.yaml` and the corpora."""
    checkpoint: Path
    imported: Path

    @classmethod
    def in_folder(cls, folder: Path, name: str) -> "StockModel":
        """Return the paths of a model that `train_stock` trains, or has trained, in a folder."""
        return cls(name, folder, folder / f"model_step_{UPDATES}.pt", folder / "imported")


def write_corpus(folder: Path) -> None:
    """Write a training and a development set, from random letters to the same in upper case."""
    generator = random.Random(5)
    for name, size in (("train", 300), ("valid", DEV_SIZE)):
        lines = [generator.choices("abcdefgh", k=generator.randint(3, 9)) for _ in range(size)]
        text = "".join(" ".join(line) + "\n" for line in lines)
        (folder / f"{name}.src").write_text(text)
        (folder / f"{name}.tgt").write_text(text.upper())


def stock(command: str, *arguments: str) -> None:
    """Run a command of stock OpenNMT-py in this process."""
    module = importlib.import_module(f"onmt.bin.{command}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [command, *arguments])
        # OpenNMT-py 2.3.0 reads its own pickles with torch.load, which newer torch refuses.
        patch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
        module.main()


def train_stock(folder: Path, changes: dict[str, object]) -> None:
    """Train a model with stock OpenNMT-py, for `UPDATES` updates."""
    write_corpus(folder)
    config = SMALL | {
        "data": {
            "corpus_1": {"path_src": f"{folder}/train.src", "path_tgt": f"{folder}/train.tgt"},
        },
        "save_data": f"{folder}/samples",
        "src_vocab": f"{folder}/vocab.src",
        "tgt_vocab": f"{folder}/vocab.tgt",
        "save_model": f"{folder}/model",
        "train_steps": UPDATES,
        "save_checkpoint_steps": UPDATES,
    }
    config |= changes
    if config.get("share_vocab"):
        config["tgt_vocab"] = config["src_vocab"]
    (folder / "stock.yaml").write_text(yaml.safe_dump(config))
    stock("build_vocab", "-config", f"{folder}/stock.yaml", "-n_sample", "-1")
    stock("train", "-config", f"{folder}/stock.yaml")
