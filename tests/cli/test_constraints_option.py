"""`translate` under lexical constraints and regular expressions, and their bad input."""

import json
import math
import re
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax import SearchTask, Translator
from onmt_entmax.checkpoint import load
from onmt_entmax.cli.translate import main
from onmt_entmax.errors import UserError
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.search import LineConstraints, SearchConfig
from tests.commands import ROOT, json_lines

MODEL = ROOT / "tests" / "data" / "model_1.0"  # reverses its source; letters a to f
SOURCES = ["a b c", "f e d", "b b a"]


def translator(**changes: object) -> Translator:
    task = SearchTask(SearchConfig(n_best=0), method="enumerate", **changes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the folder has no checksums
        return Translator([load(MODEL)], task)


@pytest.fixture(scope="module")
def everything() -> list[dict[str, float]]:
    """Probabilities of all outputs of each source."""
    answers = list(translator().answers(SOURCES))
    assert all(answer.result.certificate.level == "exhaustive" for answer in answers)
    return [{h.text: h.hypothesis.prob for h in answer.hypotheses} for answer in answers]


WISHES = {
    LineConstraints((("c b",),)): r".*c b.*",
    LineConstraints((("d", "c"),)): r".*[cd].*",
    LineConstraints((), ("b",)): r"[^b]*",
    LineConstraints((("a",), ("b", "e")), ("c",)): r"(?=.*a)(?=.*[be])[^c]*",
    LineConstraints(regex=". . [a d]"): r"\S \S [ad]",
    LineConstraints((("a",),), regex=".* b .*"): r"(?=.*a).*b.*",
}


@pytest.mark.parametrize("wish", WISHES, ids=str)
def test_every_output_that_satisfies_a_wish_is_found_with_its_probability(
    wish: LineConstraints, everything: list[dict[str, float]]
) -> None:
    wishes = [wish, LineConstraints(), wish]
    for answer, known, each in zip(
        translator().answers(SOURCES, constraints=wishes), everything, wishes, strict=True
    ):
        pattern = WISHES[wish] if each else ".*"
        wanted = {text: p for text, p in known.items() if re.fullmatch(pattern, text)}
        found = {h.text: h.hypothesis.prob for h in answer.hypotheses}
        assert found == pytest.approx(wanted)
        satisfied = answer.result.certificate.satisfied
        if each:
            least, most = satisfied or (math.nan, math.nan)
            assert least == most == pytest.approx(sum(wanted.values()), abs=1e-6)
            assert answer_record(answer)["satisfied"] == [least, most]
        else:
            assert satisfied is None


def test_an_expression_of_the_task_is_for_all_lines_and_joins_theirs() -> None:
    wishes = [LineConstraints(), LineConstraints((("e",),)), LineConstraints()]
    for answer in translator(regex="[^e]*").answers(SOURCES, constraints=wishes):
        allowed = [h.text for h in answer.hypotheses if "e" not in h.text]
        assert len(allowed) == answer.result.finished
        if answer.id == 1:  # what they want is a contradiction: proven to have no output
            assert answer.result.certificate.level == "exhaustive"
            assert answer.result.certificate.satisfied == (0.0, 0.0)


def test_a_model_that_writes_from_right_to_left_reads_constraints_from_left_to_right() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = load(MODEL)
    backwards = Translator(
        [replace(model, task=replace(model.task, right_to_left=True))], SearchTask()
    )
    (plain,) = backwards.answers(["a b c"])
    assert plain.hypotheses[0].text == "a b c"
    wishes = [LineConstraints((("a b",),)), LineConstraints(regex="a .*"), LineConstraints(())]
    for answer in backwards.answers(["a b c"] * 3, constraints=wishes):
        assert answer.hypotheses[0].text == "a b c"
    (none,) = backwards.answers(["a b c"], constraints=[LineConstraints(regex="c .*")])
    assert not none.hypotheses
    assert none.result.certificate.satisfied == (0.0, 0.0)


def command(folder: Path, constraints: str | None, *options: str) -> list[str]:
    """Return the arguments of `translate`."""
    (folder / "in").write_text("".join(f"{source}\n" for source in SOURCES))
    arguments = ["-model", MODEL, "-src", folder / "in", "-output", folder / "out"]
    arguments += ["-exactness_report", folder / "report"]
    if constraints is not None:
        (folder / "wishes").write_text(constraints)
        arguments += ["-constraints", folder / "wishes"]
    return [*map(str, arguments), *options]


def test_constraints_of_a_file(tmp_path: Path, capsys) -> None:
    """The last cannot be met: an empty line with proof, and a warning that names the word."""
    lines = '{"text": "a b c", "constraints": [["b a", "c a"]]}\nd\te\nQ\n'
    with pytest.warns(UserWarning, match="constraints of line 3: no output has 'Q', which"):
        assert main([*command(tmp_path, lines), "-constraint_regex", "[^<unk>]*"]) == 0
    outputs = (tmp_path / "out").read_text().splitlines()
    assert outputs == ["c b a", "d e f", ""]
    records = json_lines(tmp_path / "report")
    assert records[2]["certificate"] == "exhaustive"
    assert records[2]["satisfied"] == [0.0, 0.0]
    summary = json.loads((tmp_path / "report.summary.json").read_text())
    assert (summary["constrained"], summary["impossible"]) == (3, 1)
    least, most = summary["satisfied_percent"]
    assert 0 < least <= most < 67
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ("a\nb\n", "wishes: 2 lines, but "),
        ("a\n{\n\n", "wishes: line 2: not valid JSON"),
        ('a\n\n{"constraint": []}\n', "line 3: unknown key 'constraint'; known are constraints,"),
        ('{"constraints": "a"}\n\n\n', "line 1: constraints must be a list of phrases, not 'a'"),
        ('{"constraints": [[]]}\n\n\n', "line 1: constraints has an empty list"),
        ('{"constraints": [["a", 3]]}\n\n\n', "line 1: constraints has 3, which is no phrase"),
        ('\n{"text": "f d"}\n\n', "line 2: text is not the line of the source"),
        ('\n{"regex": "(a"}\n\n', "line 2: regex: character 1: '(' is not closed"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, lines: str, error: str) -> None:
    with pytest.raises(UserError) as raised:
        main(command(tmp_path, lines))
    assert error in str(raised.value)
    assert not (tmp_path / "out").exists()
