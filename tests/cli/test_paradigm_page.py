"""The page of `onmt-entmax paradigm`, and what `serve` shows of the same cells."""

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.answering import Answering
from onmt_entmax.files.checksums import write_list
from onmt_entmax.search import SearchConfig, SearchTask
from tests.cli.paradigms import cells_of, run_paradigm


class Page(NamedTuple):
    """The page of a paradigm, and what `serve` knows and answers of the same cells."""

    text: str
    answering: Answering


def copy_with_cells_file(model: Path, copy: Path, cells: Path) -> Path:
    """Copy a model folder, and add the cells, which `serve` reads from the folder alone."""
    shutil.copytree(model, copy)
    shutil.copy(cells, copy)
    write_list(copy)
    return copy


@pytest.fixture
def page(
    paradigm_model: Path, cells_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Page:
    assert run_paradigm(paradigm_model, cells_file, "german", "ab", "--format", "html") == 0
    return Page(
        text=capsys.readouterr().out,
        answering=Answering(
            copy_with_cells_file(paradigm_model, tmp_path / "model", cells_file),
            SearchTask(SearchConfig()),
        ),
    )


def test_serve_counts_the_cells_of_each_part_of_speech(page: Page) -> None:
    assert page.answering.description()["pos"]["english"] == {"V": 1, "N": 1}


def test_the_page_and_serve_show_the_same_forms(page: Page) -> None:
    paradigm = page.answering.answer({"language": "german", "source": "ab", "pos": "V"})
    forms = [form["form"] for cell in cells_of(paradigm).values() for form in cell["forms"]]
    assert forms
    assert all(f"<bdi>{form}</bdi>" in page.text for form in forms)


def test_a_page_is_named_after_its_only_lemma(page: Page) -> None:
    assert "<title>ab (german)</title>" in page.text


def test_a_page_of_several_lemmas_has_a_heading_for_each(
    paradigm_model: Path, cells_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lemmas = tmp_path / "lemmas"
    lemmas.write_text("ab\nb\n", encoding="utf-8")
    arguments = ("german", "--lemmas", lemmas, "--format", "html")
    assert run_paradigm(paradigm_model, cells_file, *arguments) == 0
    text = capsys.readouterr().out
    assert "<title>paradigms</title>" in text
    assert re.findall("<h2><bdi>(.*?)</bdi>", text) == ["ab", "b"]
