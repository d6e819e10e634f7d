"""The page of `onmt-entmax paradigm`: its titles, and the same forms as on a page of `serve`."""

import re
import shutil
from pathlib import Path

import pytest

from onmt_entmax.answering import Answering
from onmt_entmax.files.checksums import write_list
from onmt_entmax.search import SearchConfig, SearchTask
from tests.cli.paradigms import cells_of, run_paradigm


@pytest.fixture
def page(paradigm_model: Path, cells_file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The page of the German verb ab."""
    assert run_paradigm(paradigm_model, cells_file, "german", "ab", "--format", "html") == 0
    return capsys.readouterr().out


def test_a_page_is_named_after_its_only_lemma(page: str) -> None:
    assert "<title>ab (german)</title>" in page


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


# --- the same cells on a page of `serve` ---


@pytest.fixture
def answering(paradigm_model: Path, cells_file: Path, tmp_path: Path) -> Answering:
    """The answers of `serve`, which reads cells from the model's folder alone."""
    folder = shutil.copytree(paradigm_model, tmp_path / "model")
    shutil.copy(cells_file, folder)
    write_list(folder)
    return Answering(folder, SearchTask(SearchConfig()))


def test_serve_counts_the_cells_of_each_part_of_speech(answering: Answering) -> None:
    assert answering.description()["pos"]["english"] == {"V": 1, "N": 1}


def test_the_page_has_the_forms_that_serve_answers(page: str, answering: Answering) -> None:
    paradigm = answering.answer({"language": "german", "source": "ab", "pos": "V"})
    forms = [form["form"] for cell in cells_of(paradigm).values() for form in cell["forms"]]
    assert forms
    assert all(f"<bdi>{form}</bdi>" in page for form in forms)
