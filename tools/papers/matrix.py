"""Matrices of trainings: every cell (a set of options) is trained once with every seed.

A matrix has a job for each training, and one for the ensemble of each cell; a job knows its folder
and the options of its commands. `matrix_file.py` reads matrices, `run_matrices.py` runs their jobs,
and `job_figures.py` measures the results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from onmt_entmax.checkpoint import checkpoint_steps, find_model
from tools.papers.digests import digest


@dataclass(frozen=True)
class Cell:
    """A variant of the trainings.

    Attributes:
        name: also the name of its folder.
        training: all options of training but those that `Training` adds.
        decoding: all options of decoding but those that `Job` adds.
        begin_with: the cell from whose weights its trainings start; None: new weights.
    """

    name: str
    training: Mapping[str, Any]
    decoding: Mapping[str, Any]
    begin_with: Cell | None = None

    @property
    def depth(self) -> int:
        """Number of cells that must be trained before this one, from which its weights descend."""
        return 0 if self.begin_with is None else 1 + self.begin_with.depth


@dataclass(frozen=True)
class Matrix:
    """The content of a matrix file, or of one of its pairs of languages.

    Attributes:
        path: the matrix file.
        pair: name of the pair; empty if the file has no pairs.
        folder: holds a folder for each cell.
        seeds: seeds of the trainings of each cell.
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

    def trainings(self) -> list[Training]:
        """Return all trainings: every cell with the first seed, then with the second, ..."""
        return [self.training(cell, seed) for seed in self.seeds for cell in self.cells]

    def training(self, cell: Cell, seed: int) -> Training:
        """Return the training of a cell with a seed."""
        folder = self.folder / cell.name / f"seed-{seed}"
        return Training(matrix=self, cell=cell, folder=folder, seed=seed)

    def ensembles(self) -> list[Ensemble]:
        """Return the ensemble of each cell; none if the matrix has none, or one seed."""
        if not self.ensemble or len(self.seeds) < 2:
            return []
        return [
            Ensemble(matrix=self, cell=cell, folder=self.folder / cell.name / "ensemble")
            for cell in self.cells
        ]

    def jobs(self) -> list[Job]:
        """Return all trainings, then all ensembles."""
        return [*self.trainings(), *self.ensembles()]


@dataclass(frozen=True, kw_only=True)
class Job(ABC):
    """A training or an ensemble, with the decoding of a text.

    Attributes:
        matrix: has the cell, and the text to decode.
        cell: options of training and decoding.
        folder: holds all files of the job.
        split: split of the data, "dev" or "test", to which the text belongs; names the predictions.
    """

    matrix: Matrix
    cell: Cell
    folder: Path
    split: Literal["dev", "test"] = "dev"

    @property
    @abstractmethod
    def name(self) -> str:
        """Name for messages, and in the record of the test set."""

    @abstractmethod
    def members(self) -> list[Training]:
        """Return the trainings whose models decode."""

    @property
    def output(self) -> Path:
        """File of predictions."""
        folder = self.folder if self.split == "dev" else self.folder / self.split
        return folder / f"{self.split}.pred"

    def models(self) -> list[Path]:
        """Return the model folder of each member that has a checkpoint."""
        runs = [training.run_folder for training in self.members()]
        return [find_model(run) for run in runs if checkpoint_steps(run)]

    def decoding_options(self) -> dict[str, Any]:
        """Return the options of the translation command."""
        return {
            **self.cell.decoding,
            "model": [str(model) for model in self.models()],
            "src": str(self.matrix.source),
            "output": str(self.output),
            "exactness_report": str(self.output.with_name(f"{self.split}.report.jsonl")),
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


@dataclass(frozen=True, kw_only=True)
class Training(Job):
    """A training of a cell with one seed.

    Attributes:
        seed: seed of random numbers.
    """

    seed: int

    @property
    def name(self) -> str:
        """See `Job.name`."""
        return f"{self.matrix.pair} {self.cell.name} seed {self.seed}".lstrip()

    @property
    def run_folder(self) -> Path:
        """Run folder of the training command: checkpoints, and measurements of training."""
        return self.folder / "model"

    def members(self) -> list[Training]:
        """See `Job.members`."""
        return [self]

    def initial_training(self) -> Training | None:
        """Return the training whose weights this one starts from; None for new weights."""
        if self.cell.begin_with is None:
            return None
        return self.matrix.training(self.cell.begin_with, self.seed)

    def training_options(self) -> dict[str, Any]:
        """Return the options of the training command."""
        options = {**self.cell.training, "seed": self.seed, "save_model": str(self.run_folder)}
        if self.cell.training.get("tensorboard"):
            options["tensorboard_log_dir"] = str(self.folder / "tensorboard")
        initial = self.initial_training()
        if initial is not None:  # a new training, which takes only the weights of the other one
            options |= {"train_from": str(initial.run_folder), "reset_optim": "all"}
        return options


@dataclass(frozen=True, kw_only=True)
class Ensemble(Job):
    """The ensemble of a cell's trainings with all seeds, which only decodes."""

    @property
    def name(self) -> str:
        """See `Job.name`."""
        return f"{self.matrix.pair} {self.cell.name} ensemble".lstrip()

    def members(self) -> list[Training]:
        """See `Job.members`."""
        return [self.matrix.training(self.cell, seed) for seed in self.matrix.seeds]
