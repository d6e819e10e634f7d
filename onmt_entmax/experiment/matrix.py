"""The matrix of an experiment: cells that differ in a few options, each trained with several seeds.

`onmt-entmax experiment -h` describes the matrix file. Paths in it are relative to the current
folder, as in every configuration, except for `base` and a file of `cells`: these are looked for
beside the matrix file first, and then in the current folder.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from onmt_entmax.checkpoint import checkpoint_steps, find_model
from onmt_entmax.data.corpus import VALID
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.files import read_object, write_text
from onmt_entmax.options.reader import read_yaml, without_rivals

REQUIRED = ("base", "run", "seeds", "cells", "source", "reference", "evaluate")
OPTIONAL = ("options", "translate", "ensemble", "paper")
OF_A_PAIR = ("base", "source", "reference")  # keys that each of several pairs has of its own
# Options that the runner sets for each run.
RUNNER_OPTIONS = (
    "save_model",
    "train_from",
    "reset_optim",
    "overwrite",
    "seed",
    "config",
    "tensorboard_log_dir",
)
DECODING_OPTIONS = ("model", "src", "output", "exactness_report", "config", "n_best")


@dataclass(frozen=True)
class Cell:
    """A variant: all options of its training except for the seed and the folder.

    Attributes:
        begin_with: the cell from whose last weights, of the same seed, the training starts; None
            for new weights.
    """

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
    paper: str | None

    def trainings(self) -> list[Training]:
        """Return all trainings: every cell with the first seed, then with the second, ..."""
        return [self.training(cell, seed) for seed in self.seeds for cell in self.cells]

    def training(self, cell: Cell, seed: int) -> Training:
        """Return the training of a cell with a seed."""
        return Training(self, cell, seed, self.run / cell.name / f"seed-{seed}")

    def ensembles(self) -> list[Ensemble]:
        """Return the ensemble of each cell; none if not wanted, or with one seed."""
        if not self.ensemble or len(self.seeds) < 2:
            return []
        return [Ensemble(self, cell, self.run / cell.name / "ensemble") for cell in self.cells]


@dataclass(frozen=True)
class Training:
    """One cell with one seed: a model to train, to decode with and to evaluate."""

    matrix: Matrix
    cell: Cell
    seed: int
    folder: Path

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"{self.matrix.pair} {self.cell.name} seed {self.seed}".lstrip()

    @property
    def run(self) -> Path:
        """Run folder of the training command."""
        return self.folder / "model"

    def models(self) -> list[Path]:
        """Return the model to decode with, in a list; empty if there is none yet."""
        return [find_model(self.run)] if checkpoint_steps(self.run) else []

    def beginning(self) -> Training | None:
        """Return the training whose weights this one starts from; None for new weights."""
        cell = self.cell.begin_with
        return None if cell is None else self.matrix.training(cell, self.seed)

    def options(self) -> dict[str, Any]:
        """Return the options of the training command."""
        chosen = {"seed": self.seed, "save_model": str(self.run)}
        if self.cell.training.get("tensorboard"):
            chosen["tensorboard_log_dir"] = str(self.folder / "tensorboard")
        if (beginning := self.beginning()) is not None:
            chosen |= {"train_from": str(beginning.run), "reset_optim": "all"}
        return {**self.cell.training, **chosen}


@dataclass(frozen=True)
class Ensemble:
    """All seeds of a cell, whose probabilities are averaged."""

    matrix: Matrix
    cell: Cell
    folder: Path

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"{self.matrix.pair} {self.cell.name} ensemble".lstrip()

    def members(self) -> list[Training]:
        """Return the trainings of its models."""
        return [self.matrix.training(self.cell, seed) for seed in self.matrix.seeds]

    def models(self) -> list[Path]:
        """Return the models of the members that have one."""
        return [model for member in self.members() for model in member.models()]


Work = Training | Ensemble


def translation(work: Work) -> dict[str, Any]:
    """Return the options of the translation command."""
    return {
        **work.cell.translation,
        "model": [str(model) for model in work.models()],
        "src": str(work.matrix.source),
        "output": str(work.folder / "dev.pred"),
        "exactness_report": str(work.folder / "dev.report.jsonl"),
    }


def _yaml(content: Mapping[str, Any]) -> str:
    return str(yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True))


def write_yaml(path: Path, content: Mapping[str, Any]) -> None:
    """Write a configuration atomically."""
    write_text(path, _yaml(content))


def check_configuration(training: Training) -> bool:
    """Return whether the folder of a training holds the options of the matrix.

    Raises:
        UserError: it holds checkpoints of other options or other data.
    """
    path, options = training.folder / "config.yaml", training.options()
    _check_data(training)
    # Compare as text first: YAML reads a string of digits as a number.
    if path.is_file() and path.read_text(encoding="utf-8") == _yaml(options):
        return True
    before = read_yaml(str(path)) if path.is_file() else {}
    if before == options:
        return True
    if checkpoint_steps(training.run):
        missing = object()  # not None, which stands for null
        names = [*options, *before]
        name = next(n for n in names if before.get(n, missing) != options.get(n, missing))
        was, now = (repr(each[name]) if name in each else "unset" for each in (before, options))
        raise UserError(
            f"{training.folder}: was trained with {name} {was}, the matrix now says {now}; "
            f"delete that folder or choose another run folder"
        )
    return False


def _check_data(training: Training) -> None:
    """Refuse checkpoints that were trained with other data than the files hold now.

    Raises:
        UserError: there are such checkpoints, or the record of the data is damaged.
    """
    path = training.folder / "data.json"
    if not path.is_file() or not checkpoint_steps(training.run):
        return
    before = read_object(path)
    for name, now in data_digests(training).items():
        if None not in (now, before.get(name)) and before[name] != now:
            raise UserError(
                f"{training.folder}: was trained with another {name} than is there now; put the "
                f"file back, delete that folder, or choose another run folder"
            )


def data_digests(training: Training) -> dict[str, str | None]:
    """Return digests of the training data by path; None for missing files.

    They cover corpora, subword models, vocabularies and word vectors, and the weights of the run
    that the training starts from.
    """
    corpora = training.cell.training.get("data") or {}
    paths = [
        Path(str(corpus[key]))
        for name, corpus in corpora.items()
        for key in ("path_src", "path_tgt")
        if name != VALID and isinstance(corpus, dict) and key in corpus
    ]
    digests = {str(path): digest(path) for path in (*paths, *named_files(training.cell))}
    if (beginning := training.beginning()) is not None:
        trained = bool(checkpoint_steps(beginning.run))
        last = find_model(beginning.run, newest=True) if trained else beginning.run
        digests[str(beginning.run)] = digest(last / "model.safetensors")
    return digests


def named_files(
    cell: Cell, kinds: Iterable[str] = ("vocab", "embeddings", "subword_model")
) -> list[Path]:
    """Return the files of these kinds that the options of a cell name."""
    names = [f"{side}_{kind}" for kind in kinds for side in ("src", "tgt", "both")]
    found = (cell.training.get(name) for name in names)
    return [Path(str(path)) for path in dict.fromkeys(found) if path]


def digest(path: Path) -> str | None:
    """Return a digest of the content of a file; None if there is no file."""
    if not path.is_file():
        return None
    found = path.stat()
    return _digest(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=1000)  # the runs of a matrix share their files
def _digest(path: Path, time: int, size: int) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def write_configuration(training: Training) -> Path:
    """Write the options of a training and digests of its data to its folder.

    Returns:
        The path of the options.

    Raises:
        UserError: see `check_configuration`.
    """
    path, data = training.folder / "config.yaml", training.folder / "data.json"
    if not check_configuration(training):
        write_yaml(path, training.options())
    if not checkpoint_steps(training.run):
        digests = json.dumps(data_digests(training), indent=2, ensure_ascii=False)
        write_text(data, digests + "\n")
    return path


def read_matrices(
    path: Path,
    evaluations: Iterable[str],
    papers: Iterable[str],
    papers_of_pairs: Iterable[str] = (),
) -> list[Matrix]:
    """Read a matrix file: one matrix, or one for each of its pairs.

    Args:
        path: the file.
        evaluations: possible values of `evaluate`.
        papers: possible values of `paper` without pairs.
        papers_of_pairs: those with pairs.

    Raises:
        UserError: the file cannot be read, or a value is wrong.
    """
    content = read_yaml(str(path))
    pairs = content.pop("pairs", None)
    if pairs is None:
        return [_matrix(path, content, "", evaluations, papers)]
    matrices = []
    for pair, own in _mapping(path, "pairs", pairs, ()).items():
        if not _is_folder(pair):
            raise UserError(
                f"{path}: pairs: a pair is a folder, so its name is a word, not {pair!r}"
            )
        for key in _mapping(path, f"pairs: {pair}", own, ()):
            if key not in OF_A_PAIR or key in content:
                hint = "is given for all pairs too" if key in content else "no such key of a pair"
                raise UserError(f"{path}: pairs: {pair}: {key}: {hint}")
        matrices.append(_matrix(path, {**content, **own}, pair, evaluations, papers_of_pairs))
    if not matrices:
        raise UserError(f"{path}: pairs: there are none")
    return matrices


def _matrix(
    path: Path,
    content: Mapping[str, Any],
    pair: str,
    evaluations: Iterable[str],
    papers: Iterable[str],
) -> Matrix:
    for key in content:
        if key not in REQUIRED + OPTIONAL:
            elsewhere = "; options of training stand in the file of base, or under options"
            hint = nearest(str(key), (*REQUIRED, *OPTIONAL, "pairs")) or elsewhere
            raise UserError(f"{path}: {key}: no such key{hint}")
    for key in REQUIRED:
        if content.get(key) is None:
            raise UserError(f"{path}: {key}: this key is required")
    for key, known in (("evaluate", list(evaluations)), ("paper", list(papers))):
        if content.get(key) is not None and content[key] not in known:
            found = nearest(str(content[key]), known)
            raise UserError(f"{path}: {key}: {content[key]!r} is not one of {known}{found}")
    ensemble = content.get("ensemble", True)
    if not isinstance(ensemble, bool):
        raise UserError(f"{path}: ensemble: expected true or false, not {ensemble!r}")
    return Matrix(
        path=path,
        pair=pair,
        run=Path(str(content["run"]), pair),
        seeds=_seeds(path, content["seeds"]),
        cells=_cells(path, content),
        source=Path(str(content["source"])),
        reference=Path(str(content["reference"])),
        evaluate=content["evaluate"],
        ensemble=ensemble,
        paper=content.get("paper"),
    )


def _is_folder(name: Any) -> bool:
    """Tell whether a name can be that of a folder."""
    return isinstance(name, str) and re.fullmatch(r"(?!\.+$)[\w.+-]+", name) is not None


def _seeds(path: Path, seeds: Any) -> tuple[int, ...]:
    right = isinstance(seeds, list) and all(type(s) is int and s >= 0 for s in seeds)
    if not right or not seeds or len(set(seeds)) < len(seeds):
        raise UserError(f"{path}: seeds: expected different whole numbers in a list, not {seeds!r}")
    return tuple(seeds)


def _mapping(path: Path, where: str, value: Any, forbidden: Sequence[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{path}: {where}: expected options with their values, not {value!r}")
    for name in value:
        if name in forbidden:
            raise UserError(f"{path}: {where}: {name} is chosen by the runner")
    return value


def _read_beside(path: Path, key: str, name: Any) -> dict[str, Any]:
    """Read a YAML file that a matrix names, from beside it or from the current folder.

    Raises:
        UserError: it is in neither, or cannot be read.
    """
    for folder in (path.parent, Path()):
        if (folder / str(name)).is_file():
            return read_yaml(str(folder / str(name)))
    folders = dict.fromkeys((path.parent.resolve(), Path.cwd()))
    searched = " and ".join(map(str, folders))
    raise UserError(f"{path}: {key}: no such file: {name} (searched in {searched})")


def _cells(path: Path, content: Mapping[str, Any]) -> tuple[Cell, ...]:
    base = _read_beside(path, "base", content["base"])
    base = {name: value for name, value in base.items() if name not in RUNNER_OPTIONS}
    common = _mapping(path, "options", content.get("options", {}), RUNNER_OPTIONS)
    decoding = _mapping(path, "translate", content.get("translate", {}), DECODING_OPTIONS)
    given = content["cells"]
    if isinstance(given, str):
        given = _read_beside(path, "cells", given)
    cells: list[Cell] = []
    for name, value in _mapping(path, "cells", given, ()).items():
        if not _is_folder(name):
            raise UserError(
                f"{path}: cells: a cell is a folder, so its name is a word of letters, digits "
                f"and - _ + . (in quotes where YAML would see a number), not {name!r}"
            )
        changes = dict(_mapping(path, f"cells: {name}", value or {}, RUNNER_OPTIONS))
        own = _mapping(path, f"{name}: translate", changes.pop("translate", {}), DECODING_OPTIONS)
        before = {cell.name: cell for cell in cells}
        beginning = changes.pop("begin_with", None)
        if beginning not in (None, *before):
            raise UserError(
                f"{path}: cells: {name}: begin_with: {beginning!r} is not a cell before this one"
                f"{nearest(str(beginning), list(before))}"
            )
        try:
            training = {**without_rivals(base, common), **common}
            training = {**without_rivals(training, changes), **changes}
        except UserError as error:
            raise UserError(f"{path}: cells: {name}: {error}") from None
        translation = {**decoding, **own}
        cells.append(Cell(name, training, translation, before.get(beginning)))
    if not cells:
        raise UserError(f"{path}: cells: there are none")
    return tuple(cells)
