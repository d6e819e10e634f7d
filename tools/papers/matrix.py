"""Matrices of trainings: what a matrix file says, and the folders and options of each run.

`tools.papers.tables` describes the file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import checkpoint_steps, find_model
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.options.reader import read_yaml
from onmt_entmax.options.rivals import changed_batch_size, without_rivals
from tools.papers.published import CERTIFICATES, TRANSFORMERS

REQUIRED = ("base", "run", "seeds", "cells", "source", "reference", "evaluate")
KEYS = (*REQUIRED, "options", "translate", "ensemble", "paper")
OF_A_PAIR = ("base", "source", "reference")  # keys that each of several pairs has of its own
EVALUATIONS = ("sigmorphon", "bleu")  # values of `evaluate`; see evaluation.py
# Options that the runner chooses, for each training and for each decoding.
CHOSEN = ("save_model", "train_from", "reset_optim", "overwrite", "seed", "config")
CHOSEN_TO_DECODE = ("model", "src", "output", "exactness_report", "config", "n_best")


@dataclass(frozen=True)
class Cell:
    """A variant: options of its training and decoding, and the cell that it starts from."""

    name: str
    training: Mapping[str, Any]
    translation: Mapping[str, Any]
    begin_with: Cell | None = None


@dataclass(frozen=True)
class Matrix:
    """The content of a matrix file, or what it says of one of several pairs of languages."""

    path: Path
    pair: str  # empty if the file has no pairs
    run: Path
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
        return Work(self, cell, seed, self.run / cell.name / f"seed-{seed}")

    def ensembles(self) -> list[Work]:
        """Return the ensemble of each cell; none if the matrix has none, or one seed."""
        if not self.ensemble or len(self.seeds) < 2:
            return []
        return [Work(self, cell, None, self.run / cell.name / "ensemble") for cell in self.cells]


@dataclass(frozen=True)
class Work:
    """One cell with one seed, or with all seeds: models to train, to decode with, to evaluate."""

    matrix: Matrix
    cell: Cell
    seed: int | None  # None: the ensemble of all seeds
    folder: Path
    part: str = "dev"

    @property
    def name(self) -> str:
        """Name for messages."""
        seed = "ensemble" if self.seed is None else f"seed {self.seed}"
        return f"{self.matrix.pair} {self.cell.name} {seed}".lstrip()

    @property
    def run(self) -> Path:
        """Run folder of the training command."""
        return self.folder / "model"

    @property
    def output(self) -> Path:
        """File of predictions."""
        folder = self.folder if self.part == "dev" else self.folder / self.part
        return folder / f"{self.part}.pred"

    def members(self) -> list[Work]:
        """Return the trainings of its models."""
        seeds = self.matrix.seeds if self.seed is None else [self.seed]
        return [self.matrix.training(self.cell, seed) for seed in seeds]

    def models(self) -> list[Path]:
        """Return the models of the members that have one."""
        runs = [training.run for training in self.members()]
        return [find_model(run) for run in runs if checkpoint_steps(run)]

    def beginning(self) -> Work | None:
        """Return the training whose weights this one starts from; None for new weights."""
        if self.cell.begin_with is None or self.seed is None:
            return None
        return self.matrix.training(self.cell.begin_with, self.seed)

    def options(self) -> dict[str, Any]:
        """Return the options of the training command."""
        chosen: dict[str, Any] = {"seed": self.seed, "save_model": str(self.run)}
        if self.cell.training.get("tensorboard"):
            chosen["tensorboard_log_dir"] = str(self.folder / "tensorboard")
        beginning = self.beginning()
        if beginning is not None:
            chosen |= {"train_from": str(beginning.run), "reset_optim": "all"}
        return {**self.cell.training, **chosen}

    def translation(self) -> dict[str, Any]:
        """Return the options of the translation command."""
        return {
            **self.cell.translation,
            "model": [str(model) for model in self.models()],
            "src": str(self.matrix.source),
            "output": str(self.output),
            "exactness_report": str(self.output.with_name(f"{self.part}.report.jsonl")),
        }

    def digests(self) -> dict[str, str | None]:
        """Return digests of the files that the figures depend on."""
        weights = [model / "model.safetensors" for model in self.models()]
        names = [f"{side}_subword_model" for side in ("src", "tgt", "both")]
        options = [self.cell.training.get(name) for name in names]
        subwords = [Path(str(path)) for path in options if path]
        paths = (self.matrix.source, self.matrix.reference, *weights, *subwords)
        return {str(path): digest(path) for path in paths}


def digest(path: Path) -> str | None:
    """Return a digest of the content of a file; None if there is no file."""
    if not path.is_file():
        return None
    return _digest(path, path.stat().st_mtime_ns, path.stat().st_size)


@lru_cache(maxsize=1000)  # the runs of a matrix share their files
def _digest(path: Path, time: int, size: int) -> str:
    """Return a digest of a file, which is read again if its time or size is another."""
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def read_matrices(path: Path) -> list[Matrix]:
    """Read a matrix file: one matrix, or one for each of its pairs.

    Raises:
        UserError: the file cannot be read, or a value is wrong.
    """
    content = read_yaml(str(path))
    pairs = content.pop("pairs", None)
    if pairs is None:
        return [_matrix(path, content, "")]
    if not pairs:
        raise UserError(f"{path}: pairs: there are none")
    matrices = []
    for pair, options in _mapping(path, "pairs", pairs).items():
        for key in _mapping(path, f"pairs: {pair}", options):
            if key not in OF_A_PAIR or key in content:
                raise UserError(f"{path}: pairs: {pair}: {key}: a pair has {', '.join(OF_A_PAIR)}")
        matrices.append(_matrix(path, {**content, **options}, _folder(path, pair)))
    return matrices


def _folder(path: Path, name: Any) -> str:
    """Return a name that can be that of a folder."""
    if not isinstance(name, str) or not re.fullmatch(r"(?!\.+$)[\w.+-]+", name):
        raise UserError(
            f"{path}: a cell or pair is a folder, so its name is a word of letters, digits and "
            f"- _ + . (in quotes where YAML would see a number), not {name!r}"
        )
    return name


def _mapping(path: Path, where: str, value: Any, chosen: Sequence[str] = ()) -> dict[str, Any]:
    """Return a mapping that has no option that the runner chooses."""
    if not isinstance(value, dict):
        raise UserError(f"{path}: {where}: expected options with their values, not {value!r}")
    for name in value:
        if name in chosen:
            raise UserError(f"{path}: {where}: {name} is chosen by the runner")
    return value


def _beside(path: Path, name: Any) -> dict[str, Any]:
    """Read a YAML file that a matrix names, from beside it or from the current folder."""
    beside = path.parent / str(name)
    return read_yaml(str(beside if beside.is_file() else name))


def _matrix(path: Path, content: Mapping[str, Any], pair: str) -> Matrix:
    """Return a matrix from the content of its file; `pair` is empty if the file has no pairs."""
    _check_keys(path, content)
    paper, seeds, ensemble = content.get("paper"), content["seeds"], content.get("ensemble", True)
    papers = [None, "table2"] if pair else [None, *CERTIFICATES, *TRANSFORMERS]
    for key, value, possible in (
        ("evaluate", content["evaluate"], list(EVALUATIONS)),
        ("paper", paper, papers),
        ("ensemble", ensemble, [True, False]),
    ):
        if value not in possible:
            raise UserError(f"{path}: {key}: {value!r} is not one of {possible}")
    _check_seeds(path, seeds)
    return Matrix(
        path=path,
        pair=pair,
        run=Path(str(content["run"]), pair),
        seeds=tuple(seeds),
        cells=_cells(path, content),
        source=Path(str(content["source"])),
        reference=Path(str(content["reference"])),
        evaluate=content["evaluate"],
        ensemble=ensemble,
        paper=paper or "",
    )


def _check_keys(path: Path, content: Mapping[str, Any]) -> None:
    """Refuse keys that no matrix has, and a matrix without those that each has."""
    for key in content:
        if key not in KEYS:
            elsewhere = "; options of training stand in the file of base, or under options"
            hint = nearest(str(key), (*KEYS, "pairs")) or elsewhere
            raise UserError(f"{path}: {key}: no such key{hint}")
    for key in REQUIRED:
        if content.get(key) is None:
            raise UserError(f"{path}: {key}: this key is required")


def _check_seeds(path: Path, seeds: Any) -> None:
    """Refuse seeds that are not a list of different whole numbers."""
    different = isinstance(seeds, list) and seeds and len(set(map(str, seeds))) == len(seeds)
    if not different or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise UserError(f"{path}: seeds: expected different whole numbers in a list, not {seeds!r}")


def _cells(path: Path, content: Mapping[str, Any]) -> tuple[Cell, ...]:
    """Return the cells of a matrix, each with all its options."""
    base = {
        name: value for name, value in _beside(path, content["base"]).items() if name not in CHOSEN
    }
    common = _mapping(path, "options", content.get("options", {}), CHOSEN)
    decoding = _mapping(path, "translate", content.get("translate", {}), CHOSEN_TO_DECODE)
    described = content["cells"]
    if isinstance(described, str):  # the name of a file
        described = _beside(path, described)
    cells: dict[str, Cell] = {}
    for name, value in _mapping(path, "cells", described).items():
        changes = dict(_mapping(path, f"cells: {name}", value or {}, CHOSEN))
        translation = changes.pop("translate", {})
        translation = _mapping(path, f"{name}: translate", translation, CHOSEN_TO_DECODE)
        beginning = changes.pop("begin_with", None)
        if beginning not in (None, *cells):
            raise UserError(f"{path}: cells: {name}: begin_with: no cell {beginning!r} before it")
        training = base
        for later in (common, changes):
            message = changed_batch_size(training, later)
            if message is not None:
                raise UserError(f"{path}: cells: {name}: {message}")
            training = {**without_rivals(training, later), **later}
        cells[name] = Cell(
            name=_folder(path, name),
            training=training,
            translation={**decoding, **translation},
            begin_with=None if beginning is None else cells[beginning],
        )
    if not cells:
        raise UserError(f"{path}: cells: there are none")
    return tuple(cells.values())
