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
    ("tokenize", "lowercase"), [("13a", []), ("char", ["--lowercase"]), ("none", [])]
)
def test_scores_and_signatures_are_those_of_the_command(
    texts: Path,
    tmp_path: Path,
    tokenize: str,
    lowercase: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "scores.json"
    arguments = [str(texts / "one"), "--reference", str(texts / "ref"), "--output", str(output)]
    assert exit_status(bleu.main, [*arguments, "--tokenize", tokenize, *lowercase]) == 0
    ours = json.loads(output.read_text())
    wide = ["-i", "one", "-m", "bleu", "chrf", "ter", "-w", "10", "-f", "json"]
    case = ["--lowercase", "--chrf-lowercase"] if lowercase else []
    theirs = json.loads(sacrebleu(texts, *wide, "--tokenize", tokenize, *case))
    shown = capsys.readouterr().out
    for (name, value), expected in zip(
        ours["systems"][str(texts / "one")].items(), theirs, strict=True
    ):
        assert round(value["value"], 10) == expected["score"]
        assert ours["signatures"][name] == expected["signature"]
        assert f" {expected['score']:.2f}" in shown


class Bootstrap(NamedTuple):
    """What two commands print of the same paired bootstrap, system by system."""

    ours: str
    theirs: str


@pytest.fixture(scope="module")
def bootstrap(texts: Path) -> Bootstrap:
    command = ["onmt_entmax", "bleu", "one", "two", "--reference", "ref", "--resamples", 100]
    return Bootstrap(
        succeed(*command, cwd=texts),
        sacrebleu(
            texts,
            *["-i", "one", "two", "-m", "bleu", "chrf", "ter", "-w", "2", "-f", "text"],
            *["--paired-bs", "--paired-bs-n", "100"],
        ),
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


def test_the_same_scores_differ_by_chance(
    texts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Sacrebleu's own comparison, which asks for a larger difference than 0, has p at its least."""
    monkeypatch.chdir(tmp_path)
    write_translations(tmp_path)
    output = Path("one").read_text()
    Path("copy").write_text(output)
    Path("capitals").write_text(output.upper())
    arguments = ["one", "copy", "capitals", "two", "--reference", "ref", "--resamples", "100"]
    assert exit_status(bleu.main, [*arguments, "--metrics", "bleu", "--lowercase"]) == 0
    found = dict(re.findall(r"(?m)^(\w+) .*\(p ([\d.]+)\)", capsys.readouterr().out))
    assert found == {"copy": "1.0000", "capitals": "1.0000", "two": "0.0099"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing", "--reference", "ref"], "missing: no such file"),
        (["report", "--reference", "ref"], "report: an -exactness_report, not text; name the file"),
        (["short", "--reference", "ref"], "short: has 1 line, expected 60"),
        (["five", "--reference", "ref"], "has 300 lines, expected 60, as in the reference (n-best"),
        (["five", "--reference", "ref", "--nbest", "4"], "expected 240, 4 for each of 60 lines of"),
    ],
)
def test_errors_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_translations(tmp_path)
    Path("short").write_text("a\n")
    Path("report").write_text(f"{record('s', 'optimal', ('a', 0.5))}\n" * SENTENCES)
    Path("five").write_text("a\n" * 5 * SENTENCES)
    assert message in refusal(bleu.main, arguments)
