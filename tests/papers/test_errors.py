"""`tools.papers.errors`: errors of words by kind, and of beam search against enumeration."""

import math
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tests.in_process import exit_status, refusal
from tests.inflection_models import write_model
from tests.reports import record
from tools.papers import dev_words, error_kinds, errors


@pytest.mark.parametrize(
    ("form", "prediction", "kind"),
    [
        ("abc", "", "nothing predicted"),
        ("abc", "lemma", "the lemma itself"),
        ("ábc", "abc", "accents and other marks only"),
        ("abc", "Abc", "small and capital letters only"),
        ("abc", "abd", "one character"),
        ("abc", "bcd", "two characters"),
        ("abc", "xyz", "three characters or more"),
    ],
)
def test_kinds_of_errors(form: str, prediction: str, kind: str) -> None:
    word = dev_words.Word(
        "x", ("V",), "lemma", form, prediction, level="none", probability=0.5, right=False
    )
    assert error_kinds.error_kind(word) == kind


class Report(NamedTuple):
    """Three words in the working directory, the arguments to read them, and their reports."""

    arguments: list[str]
    lines: list[str]


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """The second of the words is wrong: the model gives its lemma."""
    monkeypatch.chdir(tmp_path)
    sources = ["lang=x +V a b", "lang=x +V c", "lang=y +N a"]
    files = {
        "train.src": ["lang=x +V a b", "lang=y +V c"],
        "train.tgt": ["b a", "d"],
        "dev.src": sources,
        "dev.tgt": ["b a", "c d", "a"],
    }
    for name, lines in files.items():
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    records = [
        record(sources[0], "exhaustive", ("b a", 1.0)),
        record(sources[1], "optimal", ("c", 0.6), ("d", 0.3)),
        record(sources[2], "none", ("a", 0.2)),
    ]
    Path("report").write_text("\n".join(records) + "\n")
    return Report("words --train train --dev dev --report report".split(), records)


@pytest.fixture
def tables(report: Report, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command prints of the words."""
    assert exit_status(errors.main, report.arguments) == 0
    return capsys.readouterr().out


def test_words_and_errors_are_counted(tables: str) -> None:
    assert tables.startswith("3 words: 66.67 % right, 1 errors.")


@pytest.mark.parametrize(
    "row",
    [
        pytest.param("| one form has all the probability | 1 | 100.0 | 0.0 |", id="exhaustive"),
        pytest.param("| the most probable form proven | 1 | 0.0 | 100.0 |", id="optimal"),
        pytest.param("| 0.5 to 0.7 | 1 | 0.0 | 100.0 |", id="probability"),
        pytest.param("| 1 or 2 | 2 | 50.0 | 100.0 |", id="length"),
        pytest.param("| never | 1 | 100.0 | 0.0 |", id="cell never seen"),
        pytest.param("| unseen in its language | 2 | 50.0 | 100.0 |", id="unseen lemma"),
        pytest.param("| the lemma itself | 1 | 100.0 |", id="kind of error"),
    ],
)
def test_a_table_has_words_and_their_shares(tables: str, row: str) -> None:
    """Right ones, and of all errors."""
    assert row in tables


def test_a_report_of_other_words_is_refused(report: Report) -> None:
    Path("report").write_text(report.lines[0] + "\n")
    assert "report: not of dev.src" in refusal(errors.main, report.arguments)


# --- errors of beam search ---

ROUNDING = 1e-5  # of log-probabilities in float32

SOURCES = [f"lang=english +V {text}" for text in ("a", "b", "a b", "b a", "a a b", "b b")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("errors") / "model", 3, end=0.5)


def best_log_probs(model: Path, beam_size: int) -> list[float]:
    """Return the log-probability of the best output of each source; -inf if none ended."""
    task = SearchTask(SearchConfig(beam_size=beam_size, max_length=4))
    answers = Translator.from_folders([model], task).answers(SOURCES)
    return [
        answer.hypotheses[0].hypothesis.log_prob if answer.hypotheses else -math.inf
        for answer in answers
    ]


def search_table(model: Path, folder: Path, beam_size: int, capsys: Any) -> str:
    """Return the printed table of a beam."""
    (folder / "src").write_text("".join(f"{line}\n" for line in SOURCES))
    arguments = ["search", str(model), "--source", str(folder / "src"), "--max_length", "4"]
    assert exit_status(errors.main, [*arguments, "--beam_size", str(beam_size)]) == 0
    text: str = capsys.readouterr().out
    return text


def test_search_errors_are_those_of_the_most_probable_output(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which a beam of 500 finds."""
    pairs = zip(best_log_probs(model, 1), best_log_probs(model, 500), strict=True)
    missed = sum(greedy < best - ROUNDING for greedy, best in pairs)
    assert missed > 0
    table = search_table(model, tmp_path, 1, capsys)
    assert f"| missed by the beam | {missed} |" in table
    assert "| beam 1 | of 6 |" in table


def test_a_beam_that_holds_all_outputs_misses_none(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "| missed by the beam | 0 |" in search_table(model, tmp_path, 500, capsys)
