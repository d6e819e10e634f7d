"""`Inflector.paradigm`: the forms of every cell of a lemma, and those that are probable enough."""

import json
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax import Inflector
from onmt_entmax.files.checksums import write_list
from onmt_entmax.paradigm import Paradigm
from onmt_entmax.strings.cells import cells_text
from tests.inflection_models import write_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of inflection, with the cells of two languages."""
    folder = write_model(tmp_path_factory.mktemp("paradigm") / "model", 4, end=4)
    cells = {"german": {("V",): 3, ("V", "PST"): 2}, "english": {("V", "PST"): 1}}
    (folder / "cells.tsv").write_text(cells_text(cells), encoding="utf-8")
    write_list(folder)
    return folder


@pytest.fixture(scope="module")
def paradigm(folder: Path) -> Paradigm:
    return Inflector(folder).paradigm("deu", "ab")


def cells_of(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cells of a paradigm's JSON, from all of its sections."""
    return [cell for section in content["sections"] for cell in section["cells"]]


def test_cells_have_all_forms_whatever_n_best_is(folder: Path, paradigm: Paradigm) -> None:
    """By default `n_best` is 1."""
    inflector = Inflector(folder, n_best=0, beam_size=10)
    for cell, tags in zip(paradigm.cells, ("V", "V;PST"), strict=True):
        assert cell.forms == inflector.inflect("german", "ab", tags).forms
    assert max(len(cell.forms) for cell in paradigm.cells) > 1
    assert paradigm.complete


def test_forms_are_within_the_length_limit(folder: Path) -> None:
    """The limit of one letter cuts longer forms."""
    cells = Inflector(folder, max_length=1, budget=0).paradigm("deu", "ab").cells
    assert max(len(form.text) for cell in cells for form in cell.forms) == 1
    assert any(cell.certificate.truncated for cell in cells)


def test_a_paradigm_is_json_of_all_cells(paradigm: Paradigm) -> None:
    content = json.loads(json.dumps(paradigm.to_dict(), allow_nan=False))
    assert {cell["tags"] for cell in cells_of(content)} == {"V", "V;PST"}


def test_a_paradigm_is_json_of_the_first_forms(paradigm: Paradigm) -> None:
    cells, shortened = cells_of(paradigm.to_dict()), cells_of(paradigm.to_dict(1))
    assert [cell["forms"] for cell in shortened] == [cell["forms"][:1] for cell in cells]


def test_a_paradigm_is_a_table_for_notebooks_and_text(paradigm: Paradigm) -> None:
    assert "<table" in paradigm._repr_html_()
    assert paradigm.cells[0].forms[0].text in str(paradigm)


def test_a_language_without_cells_is_named(folder: Path) -> None:
    with pytest.raises(ValueError, match="no cells of the language 'klingon'"):
        Inflector(folder).paradigm("klingon", "ab")


def test_a_part_of_speech_without_cells_is_named(folder: Path) -> None:
    with pytest.raises(ValueError, match="pos: german has V"):
        Inflector(folder).paradigm("german", "ab", "N")


LEAST = 0.2  # probability


class TestWithoutImprobableForms:
    @pytest.fixture(scope="class")
    def likely(self, paradigm: Paradigm) -> Paradigm:
        return paradigm.at_least(LEAST)

    def test_has_the_probable_ones(self, paradigm: Paradigm, likely: Paradigm) -> None:
        for cell, whole in zip(likely.cells, paradigm.cells, strict=True):
            assert [*cell.forms] == [form for form in whole.forms if form.prob >= LEAST]
            assert 0 < len(cell.forms) < len(whole.forms)

    def test_is_not_complete(self, likely: Paradigm) -> None:
        assert not likely.complete

    def test_counts_the_others(self, paradigm: Paradigm, likely: Paradigm) -> None:
        counts = [
            len(whole.forms) - len(cell.forms)
            for cell, whole in zip(likely.cells, paradigm.cells, strict=True)
        ]
        assert [cell.to_dict()["left_out"] for cell in likely.cells] == counts
        message = f"{sum(counts)} forms below {LEAST} left out"
        assert message in str(likely)
        assert message in likely._repr_html_()

    def test_is_not_said_of_a_whole_paradigm(self, paradigm: Paradigm) -> None:
        assert "left out" not in str(paradigm) + paradigm._repr_html_()

    def test_adds_up_the_counts_if_it_is_cut_again(
        self, paradigm: Paradigm, likely: Paradigm
    ) -> None:
        """With at least 1, no form is left."""
        assert likely.at_least(1).cells[0].left_out == len(paradigm.cells[0].forms)
