"""`onmt-entmax bleu` gives what sacrebleu's own command gives."""

import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax.cli import bleu
from tests.cli.translations import SENTENCES, write_translations
from tests.commands import succeed
from tests.in_process import exit_status, refusal
from tests.reports import record


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a reference and two systems; tests only read it."""
    folder = tmp_path_factory.mktemp("texts")
    write_translations(folder)
    return folder


def sacrebleu(folder: Path, *arguments: str) -> str:
    """Return what sacrebleu's command prints."""
    command = [sys.executable, "-m", "sacrebleu", "ref", *arguments, "--force"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    return done.stdout


# --- one system ---


class Scores(NamedTuple):
    """What two commands measure of the same system, with the same options.

    Attributes:
        measures: the record of ours: a `value` for each measure.
        signatures: those of ours, of each measure.
        printed: by ours.
        theirs: the record of sacrebleu's command: `score` and `signature` of each measure, of ten
            digits.
    """

    measures: dict[str, dict[str, float]]
    signatures: dict[str, str]
    printed: str
    theirs: list[dict[str, Any]]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("13a", [], []), id="13a"),
        pytest.param(
            ("char", ["--lowercase"], ["--lowercase", "--chrf-lowercase"]),
            id="lower-case characters",
        ),
        pytest.param(("none", [], []), id="none"),
    ],
)
def scores(
    request: pytest.FixtureRequest, texts: Path, tmp_path_factory: pytest.TempPathFactory
) -> Scores:
    """What both commands measure with a tokeniser, in lower case or as it is."""
    tokenize, our_case, their_case = request.param
    output = tmp_path_factory.mktemp("scores") / "scores.json"
    system = str(texts / "one")
    arguments = [system, "--reference", str(texts / "ref"), "--output", str(output)]
    with redirect_stdout(io.StringIO()) as printed:
        assert exit_status(bleu.main, [*arguments, "--tokenize", tokenize, *our_case]) == 0
    ours = json.loads(output.read_text())
    ten_digits = ["-i", "one", "-m", "bleu", "chrf", "ter", "-w", "10", "-f", "json"]
    theirs = sacrebleu(texts, *ten_digits, "--tokenize", tokenize, *their_case)
    return Scores(
        measures=ours["systems"][system],
        signatures=ours["signatures"],
        printed=printed.getvalue(),
        theirs=json.loads(theirs),
    )


def test_scores_are_those_of_the_command(scores: Scores) -> None:
    ours = [round(measure["value"], 10) for measure in scores.measures.values()]
    assert ours == [measure["score"] for measure in scores.theirs]


def test_signatures_are_those_of_the_command(scores: Scores) -> None:
    signatures = [scores.signatures[name] for name in scores.measures]
    assert signatures == [measure["signature"] for measure in scores.theirs]


def test_scores_are_printed_with_two_digits(scores: Scores) -> None:
    assert all(f" {measure['score']:.2f}" in scores.printed for measure in scores.theirs)


# --- two systems, compared by a paired bootstrap ---


class Bootstrap(NamedTuple):
    """What two commands print of the same paired bootstrap, system by system."""

    ours: str
    theirs: str


@pytest.fixture(scope="module")
def bootstrap(texts: Path) -> Bootstrap:
    command = ["onmt_entmax", "bleu", "one", "two", "--reference", "ref", "--resamples", 100]
    two_digits = ["-i", "one", "two", "-m", "bleu", "chrf", "ter", "-w", "2", "-f", "text"]
    paired = ["--paired-bs", "--paired-bs-n", "100"]
    return Bootstrap(
        ours=succeed(*command, cwd=texts), theirs=sacrebleu(texts, *two_digits, *paired)
    )


def test_scores_and_intervals_are_those_of_the_commands_bootstrap(bootstrap: Bootstrap) -> None:
    """Ours prints `score (mean +- half-width`, theirs `score (mean ± half-width`."""
    ours = re.findall(r"([\d.]+) \(([\d.]+) \+- ([\d.]+)", bootstrap.ours)
    theirs = re.findall(r"([\d.]+) \(([\d.]+) ± ([\d.]+)\)", bootstrap.theirs)
    assert ours == theirs
    assert len(ours) == 2 * 3  # three measures of two systems


def test_the_second_system_has_the_p_values_of_the_commands_bootstrap(bootstrap: Bootstrap) -> None:
    """The least p of 100 resamples is (0 + 1) / (100 + 1)."""
    (row,) = (line for line in bootstrap.ours.splitlines() if line.startswith("two "))
    ours = re.findall(r", p ([\d.]+)\)", row)
    assert ours == re.findall(r"\(p = ([\d.]+)\)", bootstrap.theirs) == ["0.0099"] * 3


def test_the_first_system_is_compared_with_nothing(bootstrap: Bootstrap) -> None:
    (row,) = (line for line in bootstrap.ours.splitlines() if line.startswith("one "))
    assert ", p " not in row


def test_equal_scores_are_not_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sacrebleu's own comparison counts a difference of 0 as one, and has p at its least."""
    monkeypatch.chdir(tmp_path)
    write_translations(tmp_path)
    output = Path("one").read_text()
    Path("copy").write_text(output)
    Path("capitals").write_text(output.upper())
    arguments = ["one", "copy", "capitals", "two", "--reference", "ref", "--resamples", "100"]
    assert exit_status(bleu.main, [*arguments, "--metrics", "bleu", "--lowercase"]) == 0
    p_values = dict(re.findall(r"(?m)^(\w+) .*, p ([\d.]+)\)", capsys.readouterr().out))
    assert p_values == {"copy": "1.0000", "capitals": "1.0000", "two": "0.0099"}


# --- mistakes ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param("missing", "missing: no such file", id="no file"),
        pytest.param(
            "report", "report: an -exactness_report, not text; name the file", id="report"
        ),
        pytest.param("short", "short: has 1 line, expected 60", id="too few lines"),
        pytest.param(
            "five", "has 300 lines, expected 60, as in the reference (n-best", id="n-best lists"
        ),
        pytest.param(
            "five --nbest 4", "expected 240, 4 for each of 60 lines of", id="shorter lists"
        ),
    ],
)
def test_errors_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_translations(tmp_path)
    Path("short").write_text("a\n")
    Path("report").write_text(f"{record('s', 'optimal', ('a', 0.5))}\n" * SENTENCES)
    Path("five").write_text("a\n" * 5 * SENTENCES)
    assert message in refusal(bleu.main, [*arguments.split(), "--reference", "ref"])


def test_a_second_reference_of_more_lines_is_not_a_list_of_hypotheses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here it has twice the lines of the first."""
    monkeypatch.chdir(tmp_path)
    write_translations(tmp_path)
    Path("double").write_text("a\n" * 2 * SENTENCES)
    line = refusal(bleu.main, ["one", "--reference", "ref", "double"])
    assert line.endswith("double: has 120 lines, expected 60, as in the reference ref")
