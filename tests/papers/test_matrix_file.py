"""Matrix files: what their cells have, and the one line that names a mistake and its place."""

from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from tests.in_process import refusal
from tests.papers.matrices import write_matrix
from tools.papers import tables
from tools.papers.matrix import Cell
from tools.papers.matrix_file import read_matrices


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"cells": {"one": 0}}, "cells: one: expected options", id="a number"),
        pytest.param({"cells": {"one": ""}}, "cells: one: expected options", id="a text"),
        pytest.param({"cells": []}, "cells: expected names with their options", id="a list"),
        pytest.param(
            {"cells": {"a b": None}}, "cells: a cell or pair is a folder", id="no folder name"
        ),
        pytest.param({"cells": {}}, "cells: there are none", id="no cells"),
        pytest.param({"cells": {"one": {"seed": 1}}}, "seed is chosen by", id="the runner's"),
        pytest.param(
            {"cells": {"one": {"translate": {"src": "x"}}}},
            "cells: one: translate: src is chosen by the runner",
            id="the runner's to decode",
        ),
        pytest.param(
            {"cells": {"one": {"begin_with": "two"}, "two": None}},
            "cells: one: begin_with: no cell 'two' before it",
            id="a later cell",
        ),
        pytest.param({"seeds": [True]}, "expected different whole numbers", id="true"),
        pytest.param({"seeds": []}, "expected different whole numbers", id="no seeds"),
        pytest.param({"seeds": 1}, "expected different whole numbers", id="one seed"),
        pytest.param({"evaluate": "ter"}, "'ter' is not one of", id="another evaluation"),
        pytest.param(
            {"ensemble": 1}, "ensemble: expected true or false, not 1", id="a number for true"
        ),
        pytest.param({"pairs": {}}, "pairs: there are none", id="no pairs"),
        pytest.param(
            {"pairs": {"de-en": {"seeds": [1]}}},
            "pairs: de-en: seeds: a pair has base, source, reference",
            id="a key that no pair has",
        ),
        pytest.param(
            {"pairs": {"de-en": {"source": "val.de"}}},
            "pairs: de-en: source: stands outside of the pairs, too",
            id="a key inside and outside of pairs",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read_matrices(write_matrix(tmp_path, **changes))


def cells_of(folder: Path, described: dict[str, object]) -> tuple[Cell, ...]:
    """Return the cells of a matrix, as they were read."""
    (matrix,) = read_matrices(write_matrix(folder, cells=described))
    return matrix.cells


def test_a_cell_without_changes_has_the_options_of_all(tmp_path: Path) -> None:
    (cell,) = cells_of(tmp_path, {"a": None})
    assert cell.training["learning_rate"] == 0.01
    assert cell.decoding == {"beam_size": 3, "max_length": 12}


def test_a_cell_changes_options_of_all(tmp_path: Path) -> None:
    changes = {"learning_rate": 0.1, "translate": {"beam_size": 4}}
    (cell,) = cells_of(tmp_path, {"a": changes})
    assert cell.training["learning_rate"] == 0.1
    assert cell.decoding == {"beam_size": 4, "max_length": 12}


def test_a_cell_may_begin_with_an_earlier_one(tmp_path: Path) -> None:
    first, second = cells_of(tmp_path, {"a": None, "b": {"begin_with": "a"}})
    assert second.begin_with == first


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            {"seeds": [1, 1]}, "seeds: expected different whole numbers", id="a seed twice"
        ),
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
    tmp_path: Path, changes: dict, message: str
) -> None:
    line = refusal(tables.main, ["run", write_matrix(tmp_path, **changes)])
    assert message in line
    assert not (tmp_path / "runs").exists()
