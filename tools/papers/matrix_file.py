"""Matrix files, which describe trainings in YAML:

    base: pilot.yaml               # the configuration of all runs, beside this file or in the
                                   # current folder, to which all other paths are relative
    run: run/matrix-pilot          # the folder of the runs
    seeds: [1, 2, 3]
    options: {train_steps: 3000}   # changes to the base, the same for all cells
    cells:                         # or the name of a file of cells
      softmax: {generator_function: softmax}
      smoothed: {label_smoothing: 0.1, translate: {beam_size: 10}}
      longer: {begin_with: smoothed, learning_rate: 0.0005}  # starts from its weights
    translate: {beam_size: 5}      # options of `onmt-entmax translate`
    source: run/pilot/data/dev.src
    reference: run/pilot/data/dev.tgt
    evaluate: sigmorphon           # or bleu
    ensemble: true                 # also decode with all seeds of a cell (default)
    paper: medium                  # compare with a published Table 1; optional: high or medium
                                   # (inflection), de-en, ja-en, ro-en, en-de (Transformers), or
                                   # table2 (pairs)

A table of several pairs of languages has, instead of base, source and reference,

    pairs:                         # each has the cells, and a folder below `run`
      de-en: {base: de-en.yaml, source: iwslt/val.de, reference: iwslt/val.en}
      en-de: {base: en-de.yaml, source: iwslt/val.en, reference: iwslt/val.de}

A training has the options of the file `base`, changed by `options`, changed by those of its cell.
A decoding has those of `translate`, changed by those of the cell. Files are checked before anything
is trained, and each error names the file and the place in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onmt_entmax.errors import nearest
from onmt_entmax.options.precedence import batch_type_conflict, earlier_in_force
from onmt_entmax.options.reader import read_yaml
from tools.papers.matrix import Cell, Matrix
from tools.papers.matrix_values import MatrixFile
from tools.papers.published import CERTIFICATES, TRANSFORMERS

REQUIRED = ("base", "run", "seeds", "cells", "source", "reference", "evaluate")
KEYS = (*REQUIRED, "options", "translate", "ensemble", "paper")
OF_A_PAIR = ("base", "source", "reference")  # keys that each pair of languages has
EVALUATIONS = ("sigmorphon", "bleu")  # values of `evaluate`; see evaluation.py
# Options that `Training` and `Job` choose for each training and each decoding.
CHOSEN_TO_TRAIN = ("save_model", "train_from", "reset_optim", "overwrite", "seed", "config")
CHOSEN_TO_DECODE = ("model", "src", "output", "exactness_report", "config", "n_best")


def read_matrices(path: Path) -> list[Matrix]:
    """Read a matrix file: one matrix, or one for each of its pairs.

    Raises:
        UserError: the file cannot be read, or a value is wrong.
    """
    content = read_yaml(str(path))
    pairs = content.pop("pairs", None)
    file = MatrixFile(path)
    if pairs is None:
        return [_matrix(file, content, "")]
    if not pairs:
        raise file.error("pairs", "there are none")
    return [
        _matrix(file, {**content, **_options_of_pair(file, content, pair, value)}, pair)
        for pair, value in file.folders(pairs, "pairs").items()
    ]


def _options_of_pair(
    file: MatrixFile, content: Mapping[str, Any], pair: str, value: object
) -> dict[str, Any]:
    """Return the keys of a pair of languages.

    Args:
        file: the matrix file.
        content: keys outside of the pairs.
        pair: name of the pair.
        value: value of the pair's key.

    Raises:
        UserError: a pair cannot have this key, or it also stands outside of the pairs.
    """
    options = file.options(value, f"pairs: {pair}")
    for key in options:
        place = f"pairs: {pair}: {key}"
        if key not in OF_A_PAIR:
            raise file.error(place, f"a pair has {', '.join(OF_A_PAIR)}")
        if key in content:
            raise file.error(place, "stands outside of the pairs, too; keep one of the two")
    return options


def _matrix(file: MatrixFile, content: Mapping[str, Any], pair: str) -> Matrix:
    """Return a matrix.

    Args:
        file: the matrix file.
        content: content of the file; for a pair, with its own keys instead of `pairs`.
        pair: its name; empty if the file has no pairs.

    Raises:
        UserError: a key is missing or unknown, or a value is wrong.
    """
    _check_keys(file, content)
    _check_seeds(file, content["seeds"])
    papers = ("table2",) if pair else (*CERTIFICATES, *TRANSFORMERS)
    evaluate = file.choice(content["evaluate"], "evaluate", EVALUATIONS)
    paper = file.choice(content.get("paper"), "paper", (None, *papers))
    ensemble = content.get("ensemble", True)
    if not isinstance(ensemble, bool):
        raise file.error("ensemble", f"expected true or false, not {ensemble!r}")
    return Matrix(
        path=file.path,
        pair=pair,
        folder=Path(str(content["run"]), pair),
        seeds=tuple(content["seeds"]),
        cells=_cells(file, content),
        source=Path(str(content["source"])),
        reference=Path(str(content["reference"])),
        evaluate=evaluate,
        ensemble=ensemble,
        paper=paper or "",
    )


def _check_keys(file: MatrixFile, content: Mapping[str, Any]) -> None:
    """Check that a matrix has all keys that it needs, and no others.

    Raises:
        UserError: names the first wrong or missing key.
    """
    for key in content:
        if key not in KEYS:
            elsewhere = "; options of training stand in the file of base, or under options"
            hint = nearest(str(key), (*KEYS, "pairs")) or elsewhere
            raise file.error(key, f"no such key{hint}")
    for key in REQUIRED:
        if content.get(key) is None:
            raise file.error(key, "this key is required")


def _check_seeds(file: MatrixFile, seeds: object) -> None:
    """Check that seeds are a list of different whole numbers.

    Raises:
        UserError: they are not.
    """
    # `type`, since True is an int, too.
    if (
        not isinstance(seeds, list)
        or not seeds
        or not all(type(seed) is int and seed >= 0 for seed in seeds)
        or len(set(seeds)) < len(seeds)
    ):
        raise file.error("seeds", f"expected different whole numbers in a list, not {seeds!r}")


def _cells(file: MatrixFile, content: Mapping[str, Any]) -> tuple[Cell, ...]:
    """Return the cells of a matrix, each with all its options.

    Raises:
        UserError: there are none, or one is wrong.
    """
    base = _read_beside(file.path, content["base"])
    base = {name: value for name, value in base.items() if name not in CHOSEN_TO_TRAIN}
    common = file.options(content.get("options"), "options", CHOSEN_TO_TRAIN)
    decoding = file.options(content.get("translate"), "translate", CHOSEN_TO_DECODE)
    options_by_cell = content["cells"]
    if isinstance(options_by_cell, str):  # the name of a file
        options_by_cell = _read_beside(file.path, options_by_cell)
    cells: dict[str, Cell] = {}
    for name, value in file.folders(options_by_cell, "cells").items():
        place = f"cells: {name}"
        training = dict(file.options(value, place, CHOSEN_TO_TRAIN))
        # These two keys of a cell are not options of training.
        own_decoding = training.pop("translate", None)
        initial = training.pop("begin_with", None)
        if initial is not None and initial not in list(cells):
            raise file.error(f"{place}: begin_with", f"no cell {initial!r} before it")
        changes = file.options(own_decoding, f"{place}: translate", CHOSEN_TO_DECODE)
        cells[name] = Cell(
            name=name,
            training=_training_options(file, place, base, common, training),
            decoding={**decoding, **changes},
            begin_with=None if initial is None else cells[initial],
        )
    if not cells:
        raise file.error("cells", "there are none")
    return tuple(cells.values())


def _read_beside(matrix: Path, name: object) -> dict[str, Any]:
    """Read a YAML file from beside a matrix file, or else from the current folder.

    Raises:
        UserError: it cannot be read.
    """
    beside = matrix.parent / str(name)
    return read_yaml(str(beside if beside.is_file() else name))


def _training_options(
    file: MatrixFile, place: str, base: Mapping[str, Any], *changes: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the options of a base with changes; later changes replace earlier ones.

    Options that an option of a change excludes are dropped, as a flag does with those of a file.

    Raises:
        UserError: a change would silently leave the size of a batch in another unit.
    """
    options = base
    for change in changes:
        message = batch_type_conflict(options, change)
        if message is not None:
            raise file.error(place, message)
        options = {**earlier_in_force(options, change), **change}
    return options
