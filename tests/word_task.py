"""A small word-level task, with files named as in OpenNMT-py's quick start, and its training."""

import json
from collections.abc import Sequence
from pathlib import Path

from tests.commands import succeed

WORD_VEC_SIZE = 12
OPTIONS = {
    "layers": 1,
    "rnn_size": 16,
    "word_vec_size": WORD_VEC_SIZE,
    "optim": "adam",
    "learning_rate": 0.01,
    "param_init": 0.0,
    "train_steps": 60,
    "valid_steps": 20,
    "save_checkpoint_steps": 20,
    "generator_function": "entmax15",
    "global_attention_function": "entmax15",
    "tgt_vocab_size": 3,  # so most words are unknown
    "selection": "bleu",
    "valid_bleu_tokenize": "none",
    "valid_decode_size": 15,
}


def train(folder: Path, *options: object, run: str = "run") -> str:
    """Train by the command on the corpora of `toy_ende`; return what it prints.

    Args:
        folder: folder of the corpora, in which the command runs.
        options: flags with their values; they come after `OPTIONS`, and win.
        run: path of the run, from `folder`.
    """
    data = {
        name: {"path_src": f"toy-ende/src-{file}.txt", "path_tgt": f"toy-ende/tgt-{file}.txt"}
        for name, file in (("toy", "train"), ("valid", "val"))
    }
    flags = [argument for key, value in OPTIONS.items() for argument in (f"-{key}", value)]
    command = ["-data", json.dumps(data), "-save_model", run, *flags, *options]
    return succeed("train.py", *command, cwd=folder)


def lines_of(path: Path) -> Sequence[str]:
    """Return the lines of a text file."""
    return path.read_text(encoding="utf-8").splitlines()
