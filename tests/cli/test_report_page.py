"""`onmt-entmax report`: the page of a report, with drawings of its sentences."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.cli import report
from tests.cli.report_pages import LINES, Page, arguments_in, write_page, write_report
from tests.commands import json_lines
from tests.in_process import refusal

DRAWABLE = [0, 2, 3]  # numbers of the `LINES` that are not blank


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder with a model and its report on `LINES`."""
    write_report(tmp_path)
    return tmp_path


def test_the_title_of_a_page_is_a_text(run: Path) -> None:
    page = write_page(run, "-details", "0", "-title", "My <title>")
    assert "<title>My &lt;title&gt;</title>" in page.text


def test_a_page_has_the_record_of_every_sentence(run: Path) -> None:
    assert len(write_page(run, "-details", "0").data["records"]) == len(LINES)


@pytest.mark.parametrize(
    ("details", "drawn"), [("all", DRAWABLE), ("2", DRAWABLE[:2]), ("0", [])], ids=["all", "2", "0"]
)
def test_as_many_sentences_are_drawn_as_asked_for(
    run: Path, details: str, drawn: list[int]
) -> None:
    """They are the first ones that have outputs."""
    data = write_page(run, "-details", details).data
    drawings = [name for name in data if name.startswith("drawing-")]
    assert drawings == [f"drawing-{number}" for number in drawn]


def test_every_hypothesis_ends_once_in_its_drawing(run: Path) -> None:
    """A branch of the drawing is (token, probability). At an end, its token is None.

    Then the number of the hypothesis follows, unless the branch stands for unlisted ones.
    """
    data = write_page(run).data
    drawings = {name: content for name, content in data.items() if name.startswith("drawing-")}
    assert drawings
    for name, content in drawings.items():
        branches = [branch for node in content["nodes"] for branch in node["branches"]]
        ends = [branch[2] for branch in branches if branch[0] is None and len(branch) == 3]
        record = data["records"][int(name.removeprefix("drawing-"))]
        assert sorted(ends) == list(range(len(record["hypotheses"])))


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        pytest.param({"model": "nowhere"}, [], "nowhere: no such model folder", id="no model"),
        pytest.param({"records": "nowhere"}, [], "nowhere: cannot be read", id="no report"),
        pytest.param({"records": "bad"}, [], "bad:1: not a record", id="no record"),
        pytest.param({"model": "model1"}, [], "other probabilities", id="another model"),
        pytest.param({}, ["-transforms", "magic"], "no transform 'magic'", id="transform"),
        pytest.param(
            {}, ["-details", "-1"], "-details: must be all or a whole number from 0", id="details"
        ),
        pytest.param(
            {},
            ["-details", "0", "-title", "a \udcff"],
            "cannot be written in utf-8",
            id="title",
        ),
        pytest.param(
            {}, ["-bleu", "13a"], "-bleu: is only read with -reference", id="no reference"
        ),
    ],
)
def test_a_call_that_does_not_fit_is_refused_and_leaves_no_page(
    run: Path, files: dict[str, str], options: list[str], message: str
) -> None:
    (run / "bad").write_text('{"id": 1}\n')
    line = refusal(report.main, arguments_in(run, *options, **files), progress=True)
    assert message in line
    assert not list(run.glob("*page.html*"))


# --- sentences that cannot be drawn ---


def change_records(run: Path, numbers: Iterable[int], change: dict[str, Any]) -> None:
    """Replace fields of the records of some sentences in the report."""
    records = json_lines(run / "report.jsonl")
    for number in numbers:
        records[number].update(change)
    (run / "report.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))


NO_SOURCE = {"source": " "}
EQUAL_HYPOTHESES = {"hypotheses": [{"text": "a", "prob": 0.5}] * 2}
OTHER_PROBABILITIES = {"hypotheses": [{"text": "a", "prob": 1.0}]}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(NO_SOURCE, "reads no words in their sources", id="no source"),
        pytest.param(
            EQUAL_HYPOTHESES, "reads several of their hypotheses as the same tokens", id="equal"
        ),
        pytest.param(
            OTHER_PROBABILITIES,
            "gives their hypotheses other probabilities than the report says",
            id="other probabilities",
        ),
    ],
)
class TestTheReason:
    def test_is_in_the_error_if_no_sentence_can_be_drawn(
        self, run: Path, change: dict[str, Any], reason: str
    ) -> None:
        change_records(run, DRAWABLE, change)
        line = refusal(report.main, arguments_in(run), progress=True)
        assert f"no sentence can be drawn: this model {reason} (is it the" in line

    def test_is_in_a_warning_if_others_can_be_drawn(
        self, run: Path, change: dict[str, Any], reason: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        change_records(run, DRAWABLE[:1], change)
        write_page(run)
        warning = f"warning: no pictures of 1 sentence: this model {reason} (is it the"
        assert warning in capsys.readouterr().err


def test_each_reason_has_a_warning(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change_records(run, DRAWABLE[:1], NO_SOURCE)
    change_records(run, DRAWABLE[1:2], EQUAL_HYPOTHESES)
    write_page(run)
    assert capsys.readouterr().err.count("warning: no pictures of 1 sentence: ") == 2


# --- notes ---


@pytest.fixture
def uncertified(run: Path) -> Page:
    """The page of a report without any certificate.

    The command counts the certificates, and advises which options of `translate` may give some.
    """
    change_records(run, range(len(LINES)), {"certificate": "none"})
    return write_page(run, "-details", "0")


def test_counts_of_certificates_are_on_the_page(uncertified: Page) -> None:
    assert "nothing is certified" in uncertified.data["notes"]


def test_options_of_translate_are_not_advised_on_the_page(uncertified: Page) -> None:
    assert not re.search(r"-(search|budget|details|n_best|max_length)\b", uncertified.text)
