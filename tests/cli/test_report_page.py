"""The command that makes a page of a report."""

import json
import re
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import save
from onmt_entmax.cli import report as report_page
from onmt_entmax.config import ModelConfig
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tests.commands import json_lines
from tests.ended import ended, refused
from tests.search.networks import DECODERS, SMALL, VOCABULARIES, network


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder with a model and its report of a few sentences."""
    for number in range(2):
        model = network("input-feeding", 1.5, 8 + number, double=False)
        config = ModelConfig(**{**SMALL, **DECODERS["input-feeding"]}, generator_alpha=1.5)
        save(tmp_path / f"model{number}", model, config, VOCABULARIES, {})
    task = SearchTask(SearchConfig(beam_size=4, n_best=4, max_length=10))
    translator = Translator.from_folders([tmp_path / "model0"], task)
    lines = ["a b c", "", "d", "a a b d"]
    with open(tmp_path / "report.jsonl", "w", encoding="utf-8") as file:
        for answer in translator.answers(lines):
            file.write(json.dumps(answer.record()) + "\n")
    return tmp_path


def arguments(
    folder: Path, *more: str, model: str = "model0", report: str = "report.jsonl"
) -> list:
    return ["-model", str(folder / model), "-report", str(folder / report),
            "-output", str(folder / "page.html"), *more]  # fmt: skip


@pytest.mark.parametrize(("details", "drawn"), [("all", 3), ("2", 2), ("0", 0)])
def test_the_command_draws_as_many_sentences_as_asked(run: Path, details: str, drawn: int) -> None:
    assert ended(report_page.main, arguments(run, "-details", details, "-title", "My <title>")) == 0
    text = (run / "page.html").read_text(encoding="utf-8")
    assert "<title>My &lt;title&gt;</title>" in text
    data = dict(re.findall(r'<script type="application/json" id="([^"]+)">(.*)</script>', text))
    records = json.loads(data.pop("records"))
    data.pop("notes", None)
    assert len(records) == 4
    found = [i for i, content in enumerate(records) if content["hypotheses"]]
    assert list(data) == [f"drawing-{i}" for i in found[:drawn]]
    for name, content in ((name, json.loads(text)) for name, text in data.items()):
        ends = [b for node in content["nodes"] for b in node["branches"] if b[0] is None]
        position = int(name.removeprefix("drawing-"))
        hypotheses = records[position]["hypotheses"]
        assert sorted(b[2] for b in ends if len(b) == 3) == list(range(len(hypotheses)))


def test_errors_are_one_line(run: Path) -> None:
    def told(*more: str, **files: str) -> str:
        return refused(report_page.main, arguments(run, *more, **files), progress=True)

    assert "no such" in told(model="nowhere").lower()
    assert "cannot be read" in told(report="nowhere")
    (run / "bad").write_text('{"id": 1}\n')
    assert "bad:1: not a record" in told(report="bad")
    assert "other probabilities" in told(model="model1")
    assert "no transform 'magic'" in told("-transforms", "magic")
    assert "-details: must be all or a whole number from 0" in told("-details", "-1")
    title = told("-details", "0", "-title", "a \udcff")
    assert "cannot be written in utf-8" in title
    assert not list(run.glob("*page.html*"))


def test_references_show_what_is_right(run: Path) -> None:
    records = json_lines(run / "report.jsonl")
    best = [r["hypotheses"][0]["text"] if r["hypotheses"] else "" for r in records]
    (run / "ref").write_text("".join(f"{text}\n" for text in ["wrong", *best[1:]]))
    reference = ["--reference", str(run / "ref"), "--title", "T", "-details", "0"]
    for more, measure, whole in (
        ([], "Accuracy (%)", pytest.approx(200 / 3)),
        (["-bleu", "none"], "BLEU none", None),
    ):
        assert ended(report_page.main, arguments(run, *reference, *more)) == 0
        text = (run / "page.html").read_text(encoding="utf-8")
        data = dict(re.findall(r'<script type="application/json" id="([^"]+)">(.*)</script>', text))
        written, curve = json.loads(data["records"]), json.loads(data["coverage"])
        assert [each.pop("right") for each in written] == [False, True, True, True]
        assert [each.pop("reference") for each in written] == ["wrong", *best[1:]]
        assert written == records
        assert curve["measure"] == measure
        assert curve["points"][0]["rule"] == "all"
        assert whole is None or curve["points"][0]["quality"] == whole
    (run / "ref").write_text("one\n")
    told = refused(report_page.main, arguments(run, *reference), progress=True)
    assert "ref: 1 line, but" in told
    told = refused(report_page.main, arguments(run, "-bleu", "13a"), progress=True)
    assert "-bleu: is only read with -reference" in told


def test_facts_are_on_the_page_and_advice_for_the_command_is_not(run: Path) -> None:
    records = json_lines(run / "report.jsonl")
    for each in records:
        each["certificate"] = "none"
    (run / "report.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    assert ended(report_page.main, arguments(run, "-details", "0")) == 0
    text = (run / "page.html").read_text(encoding="utf-8")
    (notes,) = re.findall(r'id="notes">(.*)</script>', text)
    assert "nothing is certified" in json.loads(notes)
    assert not re.search(r"-(search|budget|details|n_best|max_length)\b", text)
