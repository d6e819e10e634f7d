"""A small matrix of trainings, for the tests of `tools.papers.tables`."""

from pathlib import Path

import yaml

from tests.toy import write_config
from tools.papers.matrix import Matrix
from tools.papers.matrix_file import read_matrices


def write_matrix(folder: Path, **changes: object) -> Path:
    """Write a toy corpus with languages, and a matrix of one cell and two seeds over it.

    A change to None leaves the key out.
    """
    base = write_config(folder, train_steps=4, valid_steps=2, save_checkpoint_steps=2, rnn_size=8)
    for name in ("train", "valid"):
        lines = (folder / f"{name}.src").read_text().splitlines()
        marked = [f"lang={'ab'[number % 2]} +V {line}\n" for number, line in enumerate(lines)]
        (folder / f"{name}.src").write_text("".join(marked))
    content = {
        "base": base.name,
        "run": str(folder / "runs"),
        "seeds": [1, 2],
        "cells": {"one": {"generator_function": "sparsemax", "selection": "macro_accuracy"}},
        "options": {"learning_rate": 0.01},
        "translate": {"beam_size": 3, "max_length": 12},
        "source": str(folder / "valid.src"),
        "reference": str(folder / "valid.tgt"),
        "evaluate": "sigmorphon",
        "paper": "medium",
    } | changes
    path = folder / "matrix.yaml"
    settings = {key: value for key, value in content.items() if value is not None}
    path.write_text(yaml.safe_dump(settings, sort_keys=False))
    return path


def read_matrix(path: Path) -> Matrix:
    """Return the only matrix of a file."""
    (matrix,) = read_matrices(path)
    return matrix
