"""`Inflector.paradigm`: the forms of every cell of a lemma, all of them or only the probable ones.

A *cell* is a combination of tags for which training had words of the language.
"""

import json
from collections.abc import Callable
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


@pytest.mark.parametrize(("number", "tags"), [(0, "V"), (1, "V;PST")])
def test_a_cell_has_all_forms_whatever_n_best_is(
    folder: Path, paradigm: Paradigm, number: int, tags: str
) -> None:
    """The inflector of the paradigm has the default, 1."""
    expected = Inflector(folder, n_best=0, beam_size=10).inflect("german", "ab", tags).forms
    assert len(expected) > 1
    assert paradigm.cells[number].forms == expected


def test_a_paradigm_of_all_forms_is_complete(paradigm: Paradigm) -> None:
    assert paradigm.complete


@pytest.fixture(scope="module")
def cut(folder: Path) -> Paradigm:
    """The paradigm under a limit of one letter, which some forms exceed."""
    return Inflector(folder, max_length=1, budget=0).paradigm("deu", "ab")


def test_forms_are_within_the_length_limit(cut: Paradigm) -> None:
    assert max(len(form.text) for cell in cut.cells for form in cell.forms) == 1


def test_certificates_count_forms_beyond_the_length_limit(cut: Paradigm) -> None:
    assert any(cell.certificate.truncated for cell in cut.cells)


def test_a_paradigm_is_json_of_all_cells(paradigm: Paradigm) -> None:
    content = json.loads(json.dumps(paradigm.to_dict(), allow_nan=False))
    assert {cell["tags"] for cell in cells_of(content)} == {"V", "V;PST"}


def test_the_json_of_a_paradigm_may_have_only_the_first_form_of_each_cell(
    paradigm: Paradigm,
) -> None:
    cells, shortened = cells_of(paradigm.to_dict()), cells_of(paradigm.to_dict(1))
    assert [cell["forms"] for cell in shortened] == [cell["forms"][:1] for cell in cells]


def test_a_paradigm_is_a_table_in_a_notebook(paradigm: Paradigm) -> None:
    assert "<table" in paradigm._repr_html_()


def test_the_text_of_a_paradigm_has_its_forms(paradigm: Paradigm) -> None:
    texts = [form.text for form in paradigm.cells[0].forms if form.text]
    assert texts
    assert [text for text in texts if text not in str(paradigm)] == []


def test_a_language_without_cells_is_named(folder: Path) -> None:
    with pytest.raises(ValueError, match="no cells of the language 'klingon'"):
        Inflector(folder).paradigm("klingon", "ab")


def test_a_part_of_speech_without_cells_is_named(folder: Path) -> None:
    with pytest.raises(ValueError, match="pos: german has V"):
        Inflector(folder).paradigm("german", "ab", "N")


LEAST = 0.2  # probability; each cell has forms above and below


class TestWithoutImprobableForms:
    """A paradigm of the forms that have at least the probability `LEAST`."""

    @pytest.fixture(scope="class")
    def likely(self, paradigm: Paradigm) -> Paradigm:
        return paradigm.at_least(LEAST)

    def test_has_the_probable_forms(self, paradigm: Paradigm, likely: Paradigm) -> None:
        for cell, whole in zip(likely.cells, paradigm.cells, strict=True):
            assert [*cell.forms] == [form for form in whole.forms if form.prob >= LEAST]
            assert 0 < len(cell.forms) < len(whole.forms)

    def test_is_not_complete(self, likely: Paradigm) -> None:
        assert not likely.complete

    @pytest.fixture(scope="class")
    def left_out(self, paradigm: Paradigm, likely: Paradigm) -> list[int]:
        """The number of forms that each cell has lost."""
        return [
            len(whole.forms) - len(cell.forms)
            for cell, whole in zip(likely.cells, paradigm.cells, strict=True)
        ]

    def test_records_the_number_of_improbable_forms(
        self, likely: Paradigm, left_out: list[int]
    ) -> None:
        assert [cell.to_dict()["left_out"] for cell in likely.cells] == left_out

    @pytest.mark.parametrize("text", [str, Paradigm._repr_html_], ids=["text", "HTML"])
    def test_shows_the_number_of_improbable_forms(
        self, likely: Paradigm, left_out: list[int], text: Callable[[Paradigm], str]
    ) -> None:
        assert f"{sum(left_out)} forms below {LEAST} left out" in text(likely)

    @pytest.mark.parametrize("text", [str, Paradigm._repr_html_], ids=["text", "HTML"])
    def test_differs_from_a_whole_paradigm_which_shows_no_such_number(
        self, paradigm: Paradigm, text: Callable[[Paradigm], str]
    ) -> None:
        assert "left out" not in text(paradigm)

    def test_counts_all_lost_forms_if_more_are_left_out(
        self, paradigm: Paradigm, likely: Paradigm
    ) -> None:
        """No form has the probability 1, so none is left."""
        assert likely.at_least(1).cells[0].left_out == len(paradigm.cells[0].forms)
