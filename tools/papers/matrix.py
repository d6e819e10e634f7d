"""Matrices of trainings: every cell (a set of options) is trained once with every seed.

Here are the folders and the options of each training and ensemble. `matrix_file.py` reads matrices,
`running.py` runs them, `run_figures.py` measures the results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import checkpoint_steps, find_model


@dataclass(frozen=True)
class Cell:
    """A variant of the trainings.

    Attributes:
        name: also the name of its folder.
        training: all its options of training, except those that `Work` adds.
        decoding: all its options of decoding, except those that `Work` adds.
        begin_with: the cell from whose weights it starts; None: new weights.
    """

    name: str
    training: Mapping[str, Any]
    decoding: Mapping[str, Any]
    begin_with: Cell | None = None


@dataclass(frozen=True)
class Matrix:
    """The content of a matrix file, or of one of its pairs of languages.

    Attributes:
        path: the matrix file.
        pair: name of the pair; empty if the file has no pairs.
        folder: holds a folder for each cell.
        seeds: of the trainings of each cell.
        cells: the variants, in the order of the file.
        source: file of the text to decode.
        reference: file of its reference outputs.
        evaluate: name of its evaluation in `evaluation.EVALUATE`.
        ensemble: whether to decode with the ensemble of a cell's seeds, too.
        paper: the published table to compare with; empty: none.
    """

    path: Path
    pair: str
    folder: Path
    seeds: tuple[int, ...]
    cells: tuple[Cell, ...]
    source: Path
    reference: Path
    evaluate: str
    ensemble: bool
    paper: str

    def trainings(self) -> list[Work]:
        """Return all trainings: every cell with the first seed, then with the second, ..."""
        return [self.training(cell, seed) for seed in self.seeds for cell in self.cells]

    def training(self, cell: Cell, seed: int) -> Work:
        """Return the training of a cell with a seed."""
        return Work(self, cell, seed, self.folder / cell.name / f"seed-{seed}")

    def ensembles(self) -> list[Work]:
        """Return the ensemble of each cell; none if the matrix has none, or one seed."""
        if not self.ensemble or len(self.seeds) < 2:
            return []
        return [Work(self, cell, None, self.folder / cell.name / "ensemble") for cell in self.cells]


@dataclass(frozen=True)
class Work:
    """A training of a cell with one seed, or the ensemble of all its seeds; and its decoding.

    Attributes:
        matrix: has the cell, and the text to decode.
        cell: options of training and decoding.
        seed: of the training; None: an ensemble, which decodes with models trained elsewhere.
        folder: holds all files of the training or ensemble.
        part: of the data, "dev" or "test", to which the text belongs; names the predictions.
    """

    matrix: Matrix
    cell: Cell
    seed: int | None
    folder: Path
    part: str = "dev"

    @property
    def name(self) -> str:
        """Name for messages."""
        seed = "ensemble" if self.seed is None else f"seed {self.seed}"
        return f"{self.matrix.pair} {self.cell.name} {seed}".lstrip()

    @property
    def run_folder(self) -> Path:
        """Run folder of the training command: checkpoints, and measurements of training."""
        return self.folder / "model"

    @property
    def output(self) -> Path:
        """File of predictions."""
        folder = self.folder if self.part == "dev" else self.folder / self.part
        return folder / f"{self.part}.pred"

    def members(self) -> list[Work]:
        """Return the trainings of its models: only itself, unless it is an ensemble."""
        seeds = self.matrix.seeds if self.seed is None else [self.seed]
        return [self.matrix.training(self.cell, seed) for seed in seeds]

    def models(self) -> list[Path]:
        """Return the model folder of each member that has a checkpoint."""
        runs = [training.run_folder for training in self.members()]
        return [find_model(run) for run in runs if checkpoint_steps(run)]

    def beginning(self) -> Work | None:
        """Return the training whose weights this one starts from; None for new weights."""
        if self.cell.begin_with is None or self.seed is None:
            return None
        return self.matrix.training(self.cell.begin_with, self.seed)

    def training_options(self) -> dict[str, Any]:
        """Return the options of the training command."""
        options = {**self.cell.training, "seed": self.seed, "save_model": str(self.run_folder)}
        if self.cell.training.get("tensorboard"):
            options["tensorboard_log_dir"] = str(self.folder / "tensorboard")
        beginning = self.beginning()
        if beginning is not None:  # a new training, of which only the weights are not new
            options |= {"train_from": str(beginning.run_folder), "reset_optim": "all"}
        return options

    def decoding_options(self) -> dict[str, Any]:
        """Return the options of the translation command."""
        return {
            **self.cell.decoding,
            "model": [str(model) for model in self.models()],
            "src": str(self.matrix.source),
            "output": str(self.output),
            "exactness_report": str(self.output.with_name(f"{self.part}.report.jsonl")),
        }

    def digests(self) -> dict[str, str | None]:
        """Return digests of the files that the figures depend on, by path; None: a missing file.

        These are texts, weights and subword models.
        """
        weights = [model / "model.safetensors" for model in self.models()]
        options = [f"{side}_subword_model" for side in ("src", "tgt", "both")]
        subword_models = [self.cell.training.get(option) for option in options]
        paths = [self.matrix.source, self.matrix.reference, *weights]
        paths += [Path(str(path)) for path in subword_models if path]
        return {str(path): digest(path) for path in paths}


def digest(path: Path) -> str | None:
    """Return a digest of the content of a file; None if there is no file."""
    if not path.is_file():
        return None
    status = path.stat()
    return _digest(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1000)  # the runs of a matrix share texts: read each of them once
def _digest(path: Path, time: int, size: int) -> str:
    """Return a digest of a file; time and size tell its versions in the cache apart."""
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
