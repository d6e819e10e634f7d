"""The command that makes a page of a report."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax.checkpoint import save
from onmt_entmax.cli import report as report_page
from onmt_entmax.config import ModelConfig
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tests.commands import json_lines
from tests.in_process import exit_status, refusal
from tests.search.networks import DECODERS, SMALL_SIZES, VOCABULARIES, network


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder with a model and its report of a few sentences."""
    for number in range(2):
        model = network("input-feeding", 1.5, 8 + number, double=False)
        config = ModelConfig(**{**SMALL_SIZES, **DECODERS["input-feeding"]}, generator_alpha=1.5)
        save(tmp_path / f"model{number}", model, config, VOCABULARIES, {})
    task = SearchTask(SearchConfig(beam_size=4, n_best=4, max_length=10))
    translator = Translator.from_folders([tmp_path / "model0"], task)
    lines = ["a b c", "", "d", "a a b d"]
    with open(tmp_path / "report.jsonl", "w", encoding="utf-8") as file:
        for answer in translator.answers(lines):
            file.write(json.dumps(answer_record(answer)) + "\n")
    return tmp_path


def arguments(
    folder: Path, *options: str, model: str = "model0", report: str = "report.jsonl"
) -> list[str]:
    """Return the arguments of a call with a model and a report of a folder, and its page there."""
    files = {"model": model, "report": report, "output": "page.html"}
    paths = [word for name, file in files.items() for word in (f"-{name}", str(folder / file))]
    return [*paths, *options]


class Page(NamedTuple):
    """A page, and the data in it, by the names of their elements."""

    text: str
    data: dict[str, Any]


def write_page(run: Path, *options: str) -> Page:
    """Make the page of the report."""
    assert exit_status(report_page.main, arguments(run, *options)) == 0
    text = (run / "page.html").read_text(encoding="utf-8")
    elements = re.findall(r'<script type="application/json" id="([^"]+)">(.*)</script>', text)
    return Page(text, {name: json.loads(content) for name, content in elements})


def test_the_title_of_a_page_is_a_text(run: Path) -> None:
    page = write_page(run, "-details", "0", "-title", "My <title>")
    assert "<title>My &lt;title&gt;</title>" in page.text


@pytest.mark.parametrize(("details", "count"), [("all", 3), ("2", 2), ("0", 0)])
def test_the_command_draws_as_many_sentences_as_asked(run: Path, details: str, count: int) -> None:
    """The first that have hypotheses."""
    data = write_page(run, "-details", details).data
    records = data["records"]
    assert len(records) == 4
    with_hypotheses = [number for number, record in enumerate(records) if record["hypotheses"]]
    drawings = [name for name in data if name.startswith("drawing-")]
    assert drawings == [f"drawing-{number}" for number in with_hypotheses[:count]]


def test_every_hypothesis_ends_once_in_its_drawing(run: Path) -> None:
    """A branch is (token, probability), and (None, probability, hypothesis) at an end."""
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
        pytest.param({"model": "nowhere"}, [], "no such", id="no model"),
        pytest.param({"report": "nowhere"}, [], "cannot be read", id="no report"),
        pytest.param({"report": "bad"}, [], "bad:1: not a record", id="no record"),
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
def test_errors_are_one_line_and_leave_no_page(
    run: Path, files: dict[str, str], options: list[str], message: str
) -> None:
    (run / "bad").write_text('{"id": 1}\n')
    line = refusal(report_page.main, arguments(run, *options, **files), progress=True)
    assert message in line
    assert not list(run.glob("*page.html*"))


# --- sentences that cannot be drawn ---


def change_report(run: Path, *changes: dict[str, Any]) -> None:
    """Replace fields of the first records that have hypotheses, each by one of the changes."""
    records = json_lines(run / "report.jsonl")
    drawable = [record for record in records if record["hypotheses"]]
    for record, change in zip(drawable, changes, strict=False):
        record.update(change)
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
        change_report(run, change, change, change)
        line = refusal(report_page.main, arguments(run), progress=True)
        assert f"no sentence can be drawn: this model {reason} (is it the" in line

    def test_is_in_a_warning_if_others_can_be_drawn(
        self, run: Path, change: dict[str, Any], reason: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        change_report(run, change)
        write_page(run)
        warning = f"warning: no pictures of 1 sentence: this model {reason} (is it the"
        assert warning in capsys.readouterr().err


def test_each_reason_has_a_warning(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change_report(run, NO_SOURCE, EQUAL_HYPOTHESES)
    write_page(run)
    assert capsys.readouterr().err.count("warning: no pictures of 1 sentence: ") == 2


# --- references ---


class Judged(NamedTuple):
    """A report, and references of which the first is not the best output."""

    run: Path
    records: list[dict[str, Any]]
    references: list[str]
    options: list[str]


@pytest.fixture
def judged(run: Path) -> Judged:
    records = json_lines(run / "report.jsonl")
    best = [record["hypotheses"][0]["text"] if record["hypotheses"] else "" for record in records]
    references = ["wrong", *best[1:]]
    (run / "ref").write_text("".join(f"{text}\n" for text in references))
    return Judged(run, records, references, ["--reference", str(run / "ref"), "-details", "0"])


@pytest.mark.parametrize("bleu", [[], ["-bleu", "none"]], ids=["accuracy", "BLEU"])
def test_references_show_what_is_right(judged: Judged, bleu: list[str]) -> None:
    records = write_page(judged.run, *judged.options, *bleu).data["records"]
    assert records == [
        {**record, "right": right, "reference": reference}
        for record, right, reference in zip(
            judged.records, [False, True, True, True], judged.references, strict=True
        )
    ]


def test_a_curve_begins_with_the_accuracy_of_all(judged: Judged) -> None:
    """A blank line does not count."""
    curve = write_page(judged.run, *judged.options).data["coverage"]
    assert curve["measure"] == "Accuracy (%)"
    assert curve["points"][0]["rule"] == "all"
    assert curve["points"][0]["quality"] == pytest.approx(200 / 3)


def test_a_curve_may_be_of_bleu(judged: Judged) -> None:
    curve = write_page(judged.run, *judged.options, "-bleu", "none").data["coverage"]
    assert curve["measure"] == "BLEU none"
    assert curve["points"][0]["rule"] == "all"


def test_references_of_another_length_are_refused(judged: Judged) -> None:
    (judged.run / "ref").write_text("one\n")
    line = refusal(report_page.main, arguments(judged.run, *judged.options), progress=True)
    assert "ref: 1 line, but" in line


@pytest.fixture
def uncertified(run: Path) -> Page:
    """The page of a report without any certificate, of which the command has advice."""
    records = json_lines(run / "report.jsonl")
    lines = [json.dumps(record | {"certificate": "none"}) for record in records]
    (run / "report.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return write_page(run, "-details", "0")


def test_facts_are_on_the_page(uncertified: Page) -> None:
    assert "nothing is certified" in uncertified.data["notes"]


def test_advice_for_the_command_is_not_on_the_page(uncertified: Page) -> None:
    assert not re.search(r"-(search|budget|details|n_best|max_length)\b", uncertified.text)
