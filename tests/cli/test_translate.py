"""`translate.py`, end to end: a line of output, and a record of the report, for each line."""

from pathlib import Path

import pytest

from tests.cli.translating import Translated, arguments_of, translate, written_to
from tests.commands import succeed


@pytest.fixture(scope="module")
def translated(
    toy_run: Path, toy_source: str, tmp_path_factory: pytest.TempPathFactory
) -> Translated:
    """The development text, translated by the real command."""
    folder = tmp_path_factory.mktemp("translated")
    report = ["-exactness_report", folder / "report.jsonl"]
    printed = succeed("translate.py", *arguments_of(toy_run, folder, toy_source), *report)
    return written_to(folder, printed)


def test_most_translations_are_right(translated: Translated, trained: Path) -> None:
    """The fixture `trained` trains until most outputs are right, but not all."""
    references = (trained / "valid.tgt").read_text().splitlines()
    pairs = zip(translated.lines, references, strict=True)
    assert sum(output == reference for output, reference in pairs) > 0.5 * len(references)


def test_records_have_the_source_lines(translated: Translated, toy_source: str) -> None:
    assert [record["source"] for record in translated.records] == toy_source.splitlines()


def test_output_lines_are_the_first_hypotheses_of_the_records(translated: Translated) -> None:
    assert translated.lines == [record["hypotheses"][0]["text"] for record in translated.records]


class TestBlankLines:
    """The second and third of four lines, each with two outputs."""

    @pytest.fixture
    def with_blanks(self, toy_run: Path, tmp_path: Path) -> Translated:
        return translate(toy_run, tmp_path, "a b c\n\n   \nb a\n", "-n_best", 2)

    def test_keep_their_place_in_the_output(self, with_blanks: Translated) -> None:
        assert len(with_blanks.lines) == 4 * 2
        assert [line == "" for line in with_blanks.lines[::2]] == [False, True, True, False]

    def test_have_as_many_output_lines_as_others(self, with_blanks: Translated) -> None:
        assert with_blanks.lines[2:6] == [""] * 4

    def test_have_records_without_hypotheses(self, with_blanks: Translated) -> None:
        has_hypotheses = [record["hypotheses"] != [] for record in with_blanks.records]
        assert has_hypotheses == [True, False, False, True]
