"""`onmt-entmax inflect`: queries on the command line, in a file, and typed by a person."""

import io
from pathlib import Path

import pytest

from onmt_entmax.cli import inflect
from tests.cli.inflecting import rows_of, type_lines
from tests.in_process import exit_status, refusal


@pytest.mark.parametrize(
    ("command_line", "message"),
    [
        pytest.param(
            "ab V", 'expected LANGUAGE LEMMA TAGS, found 2 words; quote tags: "V;PST"', id="2 words"
        ),
        pytest.param(
            "english ab V --input f", "give a query or --input, not both", id="query and file"
        ),
        pytest.param(
            "english ab V --all --n_best 3", "--n_best: not allowed with", id="all and some"
        ),
        pytest.param("germann ab V", "germann'; did you mean 'german'?", id="misspelt language"),
    ],
)
def test_a_command_line_that_is_not_a_query_is_refused(
    inflection_model: Path, capsys: pytest.CaptureFixture[str], command_line: str, message: str
) -> None:
    arguments = [*command_line.split(), "--model", inflection_model]
    assert message in refusal(inflect.main, arguments)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("english ab V\ngerman b V\n", id="spaces"),
        pytest.param("english\tab\tV\ngerman\tb\tV\n", id="tabs"),
        pytest.param("english\tab\tV\ngerman b V\n", id="tabs and spaces in different lines"),
        pytest.param("english ab V\n\n \ngerman b V\n", id="blank lines"),
        pytest.param("english ab V\r\ngerman b V\r\n", id="line ends of Windows"),
        pytest.param("english ab V\ngerman b V", id="no line end"),
    ],
)
def test_each_line_is_a_query(
    inflection_model: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    text: str,
) -> None:
    type_lines(monkeypatch, text)
    assert exit_status(inflect.main, ["--model", str(inflection_model)]) == 0
    rows = rows_of(capsys.readouterr().out)
    queries = [(row.language, row.lemma, row.tags) for row in rows]
    assert queries == [("english", "ab", "V"), ("german", "b", "V")]


def test_a_lemma_between_tabs_may_have_a_space(
    inflection_model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    type_lines(monkeypatch, "german\ta b\tV\n")
    assert exit_status(inflect.main, ["--model", str(inflection_model)]) == 0
    (row,) = rows_of(capsys.readouterr().out)
    assert row.lemma == "a b"


@pytest.mark.parametrize(
    ("heading", "row", "options"),
    [
        pytest.param("lemma\ttags", "ab\tV", ["--language", "german"], id="one language"),
        pytest.param("language lemma tags", "german ab V", [], id="a column of languages"),
    ],
)
def test_a_heading_is_left_out(
    inflection_model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    heading: str,
    row: str,
    options: list[str],
) -> None:
    type_lines(monkeypatch, f"{heading}\n{row}\n")
    arguments = ["--model", str(inflection_model), "--input", "-", *options]
    assert exit_status(inflect.main, arguments) == 0
    printed = capsys.readouterr()
    assert [line.split("\t")[:3] for line in printed.out.splitlines()] == [["german", "ab", "V"]]
    assert f"note: standard input: heading {heading!r} left out" in printed.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "english a V\nenglish a\n",
            "standard input:2: expected language lemma tags",
            id="no tags",
        ),
        pytest.param(
            "english\ta\t\n",
            "standard input:1: there are no tags, but english has some",
            id="no tags behind a tab",
        ),
        pytest.param("\n", "standard input: no queries", id="blank"),
        pytest.param(
            "english a V\nenglis a V\n",
            "standard input:2: the model knows no language 'englis'",
            id="misspelt language",
        ),
    ],
)
def test_bad_lines_are_refused_in_one_line(
    inflection_model: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    type_lines(monkeypatch, text)
    assert message in refusal(inflect.main, ["--model", inflection_model])


class Terminal(io.TextIOWrapper):
    """Standard input at which a person types."""

    def isatty(self) -> bool:
        return True


def test_a_person_can_type_again_after_a_bad_line(
    inflection_model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(io.BytesIO(b"english a\nenglish a V\n")))
    assert exit_status(inflect.main, ["--model", str(inflection_model)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("english\ta\tV\t1\t")
    hint, refused = printed.err.splitlines()
    assert hint == "type language lemma tags, such as V;PST for tags; Ctrl-D ends"
    assert refused.startswith("inflect.py: expected language lemma tags")
