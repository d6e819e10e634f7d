"""Matrix files: what their cells have, and the one line that names a mistake and its place."""

from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from tests.in_process import refusal
from tests.papers.matrices import write_matrix
from tools.papers import tables
from tools.papers.matrix import Cell
from tools.papers.matrix_file import read_matrices

# --- cells -----------------------------------------------------------------------------------


def cells_of(folder: Path, described: dict[str, object]) -> tuple[Cell, ...]:
    """Write a matrix with these cells, and return them as they are read."""
    (matrix,) = read_matrices(write_matrix(folder, cells=described))
    return matrix.cells


def test_a_cell_without_options_has_those_of_the_matrix(tmp_path: Path) -> None:
    (cell,) = cells_of(tmp_path, {"a": None})
    assert cell.training["learning_rate"] == 0.01
    assert cell.decoding == {"beam_size": 3, "max_length": 12}


def test_options_of_a_cell_replace_those_of_the_matrix(tmp_path: Path) -> None:
    changes = {"learning_rate": 0.1, "translate": {"beam_size": 4}}
    (cell,) = cells_of(tmp_path, {"a": changes})
    assert cell.training["learning_rate"] == 0.1
    assert cell.decoding == {"beam_size": 4, "max_length": 12}


def test_a_cell_may_begin_with_an_earlier_one(tmp_path: Path) -> None:
    first, second = cells_of(tmp_path, {"a": None, "b": {"begin_with": "a"}})
    assert second.begin_with == first


# --- mistakes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        pytest.param({"one": 0}, "one: expected options", id="options that are a number"),
        pytest.param({"one": ""}, "one: expected options", id="options that are a text"),
        pytest.param([], "expected names with their options", id="a list"),
        pytest.param({"a b": None}, "a cell or pair is a folder", id="a name with a space"),
        pytest.param({}, "there are none", id="no cells"),
        pytest.param({"one": {"seed": 1}}, "one: seed is chosen by", id="a seed of its own"),
        pytest.param(
            {"one": {"translate": {"src": "x"}}},
            "one: translate: src is chosen by the runner",
            id="a source to translate of its own",
        ),
        pytest.param(
            {"one": {"begin_with": "two"}, "two": None},
            "one: begin_with: no cell 'two' before it",
            id="a cell that begins with a later one",
        ),
    ],
)
def test_wrong_cells_are_refused(tmp_path: Path, cells: object, message: str) -> None:
    with pytest.raises(UserError, match=f"cells: {message}"):
        read_matrices(write_matrix(tmp_path, cells=cells))


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param([True], id="true"),
        pytest.param([], id="none"),
        pytest.param(1, id="a number in place of a list"),
        pytest.param([1, 1], id="a seed twice"),
    ],
)
def test_wrong_seeds_are_refused(tmp_path: Path, seeds: object) -> None:
    with pytest.raises(UserError, match="seeds: expected different whole numbers"):
        read_matrices(write_matrix(tmp_path, seeds=seeds))


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        pytest.param({}, "there are none", id="no pairs"),
        pytest.param(
            {"de-en": {"seeds": [1]}},
            "de-en: seeds: a pair has base, source, reference",
            id="a key that no pair has",
        ),
        pytest.param(
            {"de-en": {"source": "val.de"}},
            "de-en: source: stands outside of the pairs, too",
            id="a key inside and outside of pairs",
        ),
    ],
)
def test_wrong_pairs_are_refused(tmp_path: Path, pairs: object, message: str) -> None:
    with pytest.raises(UserError, match=f"pairs: {message}"):
        read_matrices(write_matrix(tmp_path, pairs=pairs))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"evaluate": "ter"}, "'ter' is not one of", id="an unknown evaluation"),
        pytest.param(
            {"ensemble": 1}, "ensemble: expected true or false, not 1", id="a number for true"
        ),
    ],
)
def test_other_wrong_values_are_refused(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read_matrices(write_matrix(tmp_path, **changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"seeds": []}, "seeds: expected different whole numbers", id="no seeds"),
        pytest.param(
            {"evaluat": "bleu"},
            "evaluat: no such key; did you mean 'evaluate'?",
            id="a misspelt key",
        ),
        pytest.param(
            {"cells": {"one": {"rnn_siz": 2}}},
            "one: rnn_siz: no such option; did you mean",
            id="a misspelt option",
        ),
        pytest.param({"translate": {"beam_size": 0}}, "one: beam_size", id="a value out of range"),
    ],
)
def test_a_wrong_matrix_is_refused_before_anything_runs(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    line = refusal(tables.main, ["run", write_matrix(tmp_path, **changes)])
    assert message in line
    assert not (tmp_path / "runs").exists()
