"""`onmt-entmax paradigm`: the forms of every cell of a lemma, and how a call names its words."""

import json
from pathlib import Path

import pytest

from onmt_entmax.inflector import Inflection, Inflector
from tests.cli.paradigms import Record, cells_of, run_paradigm
from tests.cli.tables import write_table

# --- the forms of a cell ---


@pytest.fixture
def cells(
    paradigm_model: Path, cells_file: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, Record]:
    """The records of all cells of the German verb ab, with every form of the small model."""
    enough = 1000  # steps of an enumeration, which finds all forms in fewer
    arguments = ("german", "ab", "--format", "json", "--budget", enough)
    assert run_paradigm(paradigm_model, cells_file, *arguments) == 0
    return cells_of(json.loads(capsys.readouterr().out))


def test_a_paradigm_has_all_cells_of_a_part_of_speech(cells: dict[str, Record]) -> None:
    assert cells.keys() == {"V", "V;PST"}


@pytest.mark.parametrize("tags", ["V", "V;PST"])
class TestACell:
    @pytest.fixture
    def expected(self, tags: str, paradigm_model: Path) -> Inflection:
        """All forms of the cell, as `inflect --all` finds them."""
        return Inflector([paradigm_model], n_best=0).inflect("german", "ab", tags)

    def test_has_every_form_of_inflect(
        self, cells: dict[str, Record], tags: str, expected: Inflection
    ) -> None:
        forms = [form["form"] for form in cells[tags]["forms"]]
        assert forms == [form.text for form in expected.forms]
        assert len(forms) > 1

    def test_has_their_probabilities(
        self, cells: dict[str, Record], tags: str, expected: Inflection
    ) -> None:
        """They come from a search with other settings, whose sums are rounded differently."""
        probs = [form["prob"] for form in cells[tags]["forms"]]
        assert probs == pytest.approx([form.prob for form in expected.forms], abs=1e-5)

    def test_has_a_certificate_that_there_is_no_other_form(
        self, cells: dict[str, Record], tags: str
    ) -> None:
        assert cells[tags]["certificate"] == "exhaustive"


# --- the language and the lemmas ---


def test_a_language_may_be_named_by_its_code(
    paradigm_model: Path, cells_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verb = ("ab", "--pos", "V", "--format", "csv")
    assert run_paradigm(paradigm_model, cells_file, "german", *verb) == 0
    by_name = capsys.readouterr().out
    assert by_name
    assert run_paradigm(paradigm_model, cells_file, "deu", *verb) == 0
    assert capsys.readouterr().out == by_name


def test_tables_of_several_lemmas_follow_each_other(
    paradigm_model: Path, cells_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Blank lines divide the lemmas and their tables, each of which has a title and two rows."""
    lemmas = tmp_path / "lemmas"
    lemmas.write_text("ab\nb a\n", encoding="utf-8")
    assert run_paradigm(paradigm_model, cells_file, "german", "--lemmas", lemmas) == 0
    first_lemma, first_table, second_lemma, second_table = capsys.readouterr().out.split("\n\n")
    assert (first_lemma, second_lemma) == ("ab", "b a")
    for table in (first_table, second_table):
        title, *rows = table.splitlines()
        assert (title, len(rows)) == ("verb", 2)


@pytest.mark.parametrize("first", ["lemma", "ab"])
def test_a_first_lemma_that_may_be_a_heading_gives_a_warning(
    paradigm_model: Path,
    cells_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    first: str,
) -> None:
    lemmas = write_table(tmp_path / "lemmas", first, "ba")
    assert run_paradigm(paradigm_model, cells_file, "german", "--lemmas", lemmas) == 0
    warning = f"warning: {lemmas}: 'lemma' may be a heading; it is read as a lemma\n"
    assert (warning in capsys.readouterr().err) == (first == "lemma")
