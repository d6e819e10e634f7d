"""`onmt-entmax bleu` gives what sacrebleu's own command gives."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

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


@pytest.mark.parametrize(
    ("tokenize", "case", "their_case"),
    [
        ("13a", [], []),
        ("char", ["--lowercase"], ["--lowercase", "--chrf-lowercase"]),
        ("none", [], []),
    ],
    ids=["13a", "lower-case characters", "none"],
)
def test_scores_and_signatures_are_those_of_the_command(
    texts: Path,
    tmp_path: Path,
    tokenize: str,
    case: list[str],
    their_case: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "scores.json"
    arguments = [str(texts / "one"), "--reference", str(texts / "ref"), "--output", str(output)]
    assert exit_status(bleu.main, [*arguments, "--tokenize", tokenize, *case]) == 0
    ours = json.loads(output.read_text())
    measures = ours["systems"][str(texts / "one")]
    ten_digits = ["-i", "one", "-m", "bleu", "chrf", "ter", "-w", "10", "-f", "json"]
    theirs = json.loads(sacrebleu(texts, *ten_digits, "--tokenize", tokenize, *their_case))
    scores = [measure["score"] for measure in theirs]
    assert [round(measure["value"], 10) for measure in measures.values()] == scores
    signatures = [ours["signatures"][name] for name in measures]
    assert signatures == [measure["signature"] for measure in theirs]
    printed = capsys.readouterr().out
    assert all(f" {score:.2f}" in printed for score in scores)


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
    ours = re.findall(r"([\d.]+) \+- ([\d.]+)", bootstrap.ours)
    theirs = re.findall(r"([\d.]+) \([\d.]+ ± ([\d.]+)\)", bootstrap.theirs)  # without the mean
    assert ours == theirs
    assert len(ours) == 2 * 3  # three measures of two systems


def test_the_second_system_has_the_p_values_of_the_commands_bootstrap(bootstrap: Bootstrap) -> None:
    (row,) = (line for line in bootstrap.ours.splitlines() if line.startswith("two "))
    ours = re.findall(r"\(p ([\d.]+)\)", row)
    assert ours == re.findall(r"\(p = ([\d.]+)\)", bootstrap.theirs) == ["0.0099"] * 3


def test_the_first_system_is_compared_with_nothing(bootstrap: Bootstrap) -> None:
    (row,) = (line for line in bootstrap.ours.splitlines() if line.startswith("one "))
    assert "(p " not in row


def test_equal_scores_are_no_difference(
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
    p_values = dict(re.findall(r"(?m)^(\w+) .*\(p ([\d.]+)\)", capsys.readouterr().out))
    assert p_values == {"copy": "1.0000", "capitals": "1.0000", "two": "0.0099"}


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
