"""Matrix files: read, and checked before anything is trained. `tools.papers.tables` describes them.

A training has the options of the file `base`, changed by `options`, changed by those of its cell.
A decoding has those of `translate`, changed by those of the cell. Each error names the file and the
place in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.errors import UserError, nearest
from onmt_entmax.options.exclusive import batch_type_conflict, earlier_in_force
from onmt_entmax.options.reader import read_yaml
from tools.papers.matrix import Cell, Matrix
from tools.papers.published import CERTIFICATES, TRANSFORMERS

REQUIRED = ("base", "run", "seeds", "cells", "source", "reference", "evaluate")
KEYS = (*REQUIRED, "options", "translate", "ensemble", "paper")
OF_A_PAIR = ("base", "source", "reference")  # keys that each of several pairs has of its own
EVALUATIONS = ("sigmorphon", "bleu")  # values of `evaluate`; see evaluation.py
# Options that `Work` chooses, for each training and for each decoding.
CHOSEN_TO_TRAIN = ("save_model", "train_from", "reset_optim", "overwrite", "seed", "config")
CHOSEN_TO_DECODE = ("model", "src", "output", "exactness_report", "config", "n_best")


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
    for name, value in _mapping(path, "pairs", pairs).items():
        pair = _folder_name(path, name)
        options = _mapping(path, f"pairs: {pair}", value)
        for key in options:
            place = f"{path}: pairs: {pair}: {key}"
            if key not in OF_A_PAIR:
                raise UserError(f"{place}: a pair has {', '.join(OF_A_PAIR)}")
            if key in content:
                raise UserError(f"{place}: stands outside of the pairs, too; keep one of the two")
        matrices.append(_matrix(path, {**content, **options}, pair))
    return matrices


# --- values of any key -----------------------------------------------------------------------


def _folder_name(path: Path, name: Any) -> str:
    """Check the name of a cell or pair; return it.

    Raises:
        UserError: no folder should have it.
    """
    if not isinstance(name, str) or not re.fullmatch(r"(?!\.+$)[\w.+-]+", name):
        raise UserError(
            f"{path}: a cell or pair is a folder, so its name is a word of letters, digits and "
            f"- _ + . (in quotes where YAML would see a number), not {name!r}"
        )
    return name


def _mapping(path: Path, where: str, value: Any, refused: Collection[str] = ()) -> dict[str, Any]:
    """Check that a value is a mapping, of names to cells, to pairs or to options; return it.

    Args:
        path: of the matrix file.
        where: place of the value in the file.
        value: None stands for an empty mapping, as in `cell:` with nothing behind it.
        refused: options that the runner chooses, which the mapping may not have.

    Raises:
        UserError: it is something else, or has a refused option.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UserError(f"{path}: {where}: expected options with their values, not {value!r}")
    for name in value:
        if name in refused:
            raise UserError(f"{path}: {where}: {name} is chosen by the runner")
    return value


def _read_beside(path: Path, name: Any) -> dict[str, Any]:
    """Read a YAML file that a matrix names, from beside it or from the current folder.

    Raises:
        UserError: it cannot be read.
    """
    beside = path.parent / str(name)
    return read_yaml(str(beside if beside.is_file() else name))


# --- a matrix --------------------------------------------------------------------------------


def _matrix(path: Path, content: Mapping[str, Any], pair: str) -> Matrix:
    """Return a matrix.

    Args:
        path: of the matrix file.
        content: of the file; of a pair, with its own keys in the place of `pairs`.
        pair: its name; empty if the file has no pairs.

    Raises:
        UserError: a key is missing or unknown, or a value is wrong.
    """
    _check_keys(path, content)
    _check_seeds(path, content["seeds"])
    _check_choice(path, "evaluate", content["evaluate"], EVALUATIONS)
    papers = ("table2",) if pair else (*CERTIFICATES, *TRANSFORMERS)
    paper = content.get("paper")
    _check_choice(path, "paper", paper, (None, *papers))
    ensemble = content.get("ensemble", True)
    if not isinstance(ensemble, bool):
        raise UserError(f"{path}: ensemble: expected true or false, not {ensemble!r}")
    return Matrix(
        path=path,
        pair=pair,
        folder=Path(str(content["run"]), pair),
        seeds=tuple(content["seeds"]),
        cells=_cells(path, content),
        source=Path(str(content["source"])),
        reference=Path(str(content["reference"])),
        evaluate=content["evaluate"],
        ensemble=ensemble,
        paper=paper or "",
    )


def _check_keys(path: Path, content: Mapping[str, Any]) -> None:
    """Check that a matrix has all keys that it needs, and no others.

    Raises:
        UserError: names the first wrong or missing key.
    """
    for key in content:
        if key not in KEYS:
            elsewhere = "; options of training stand in the file of base, or under options"
            hint = nearest(str(key), (*KEYS, "pairs")) or elsewhere
            raise UserError(f"{path}: {key}: no such key{hint}")
    for key in REQUIRED:
        if content.get(key) is None:
            raise UserError(f"{path}: {key}: this key is required")


def _check_seeds(path: Path, seeds: Any) -> None:
    """Check that seeds are a list of different whole numbers.

    Raises:
        UserError: they are not.
    """
    # `type`, since True is an int, too.
    are_numbers = isinstance(seeds, list) and all(type(seed) is int and seed >= 0 for seed in seeds)
    if not are_numbers or not seeds or len(set(seeds)) < len(seeds):
        raise UserError(f"{path}: seeds: expected different whole numbers in a list, not {seeds!r}")


def _check_choice(path: Path, key: str, value: Any, possible: Sequence[str | None]) -> None:
    """Check that a value is one of those that its key can have.

    Raises:
        UserError: it is not.
    """
    if value not in possible:
        raise UserError(f"{path}: {key}: {value!r} is not one of {list(possible)}")


# --- cells -----------------------------------------------------------------------------------


def _cells(path: Path, content: Mapping[str, Any]) -> tuple[Cell, ...]:
    """Return the cells of a matrix, each with all its options.

    Raises:
        UserError: there are none, or one is wrong.
    """
    base = _read_beside(path, content["base"])
    base = {name: value for name, value in base.items() if name not in CHOSEN_TO_TRAIN}
    common = _mapping(path, "options", content.get("options"), CHOSEN_TO_TRAIN)
    decoding = _mapping(path, "translate", content.get("translate"), CHOSEN_TO_DECODE)
    described = content["cells"]
    if isinstance(described, str):  # the name of a file
        described = _read_beside(path, described)
    cells: dict[str, Cell] = {}
    for name, value in _mapping(path, "cells", described).items():
        where = f"cells: {_folder_name(path, name)}"
        training = dict(_mapping(path, where, value, CHOSEN_TO_TRAIN))
        # Two keys of a cell are no options of training.
        own_decoding = training.pop("translate", None)
        beginning = training.pop("begin_with", None)
        if beginning is not None and beginning not in list(cells):
            raise UserError(f"{path}: {where}: begin_with: no cell {beginning!r} before it")
        changes = _mapping(path, f"{where}: translate", own_decoding, CHOSEN_TO_DECODE)
        cells[name] = Cell(
            name=name,
            training=_training_options(path, where, base, common, training),
            decoding={**decoding, **changes},
            begin_with=None if beginning is None else cells[beginning],
        )
    if not cells:
        raise UserError(f"{path}: cells: there are none")
    return tuple(cells.values())


def _training_options(
    path: Path, where: str, base: Mapping[str, Any], *changes: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the options of a base with changes, of which later ones count.

    Options that an option of a change excludes are dropped, as a flag does with those of a file.

    Raises:
        UserError: a change would silently leave the size of a batch in another unit.
    """
    options = base
    for change in changes:
        message = batch_type_conflict(options, change)
        if message is not None:
            raise UserError(f"{path}: {where}: {message}")
        options = {**earlier_in_force(options, change), **change}
    return options
