"""`tools/bleu.py` gives what sacrebleu's own command gives."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from onmt_entmax.cli import bleu
from tests.commands import succeed
from tests.ended import ended


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    """A reference and two systems that make mistakes, the second one more of them."""
    folder = tmp_path_factory.mktemp("texts")
    generator = random.Random(4)
    words = "a the man woman dog cat runs sits , . 's quickly over under".split()
    reference = [generator.choices(words, k=generator.randint(4, 14)) for _ in range(60)]
    for name, errors in (("ref", 0.0), ("one", 0.1), ("two", 0.3)):
        lines = [
            " ".join(w if generator.random() > errors else generator.choice(words) for w in line)
            for line in reference
        ]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def sacrebleu(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "sacrebleu", "ref", *arguments, "--force"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    return done.stdout


@pytest.mark.parametrize("tokenize", ["13a", "none", "char", "intl"])
@pytest.mark.parametrize("lowercase", [[], ["--lowercase"]], ids=["cased", "lowercase"])
def test_scores_and_signatures_are_those_of_the_command(
    texts: Path, tmp_path: Path, tokenize: str, lowercase: list[str], capsys
) -> None:
    output = tmp_path / "scores.json"
    arguments = [str(texts / "one"), "--reference", str(texts / "ref"), "--output", str(output)]
    assert ended(bleu.main, [*arguments, "--tokenize", tokenize, *lowercase]) == 0
    ours = json.loads(output.read_text())
    wide = ["-i", "one", "-m", "bleu", "chrf", "ter", "-w", "10", "-f", "json"]
    theirs = json.loads(sacrebleu(texts, *wide, "--tokenize", tokenize, *lowercase))
    shown = capsys.readouterr().out
    for (name, value), expected in zip(
        ours["systems"][str(texts / "one")].items(), theirs, strict=True
    ):
        assert round(value["value"], 10) == expected["score"]
        assert ours["signatures"][name] == expected["signature"]
        assert f" {expected['score']:.2f}" in shown


def test_the_bootstrap_is_that_of_the_command(texts: Path, tmp_path: Path) -> None:
    table = succeed(
        "tools/bleu.py", "one", "two", "--reference", "ref", "--resamples", 100, cwd=texts
    )
    theirs = sacrebleu(
        texts,
        *["-i", "one", "two", "-m", "bleu", "chrf", "ter", "-w", "2", "-f", "text"],
        *["--paired-bs", "--paired-bs-n", "100"],
    )
    rows = [line for line in table.splitlines() if line.startswith(("one ", "two "))]
    assert len(rows) == 2
    for row in rows:
        for cell in row.split("  ")[1:]:
            numbers = cell.replace("+-", "").replace("(p", "").replace(")", "").split()
            assert all(number in theirs for number in numbers), (cell, theirs)
    assert "(p 0.0099)" in rows[1]
    assert "(p " not in rows[0]


def test_the_same_translations_differ_by_chance(texts: Path, tmp_path: Path, capsys) -> None:
    """Sacrebleu's own comparison, which asks for a larger difference than 0, has p at its least."""
    copy = tmp_path / "copy"
    copy.write_text((texts / "one").read_text())
    systems = [str(texts / "one"), str(copy), str(texts / "two")]
    arguments = [*systems, "--reference", str(texts / "ref"), "--resamples", "100"]
    assert ended(bleu.main, [*arguments, "--metrics", "bleu"]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if "+-" in line}
    assert "(p 1.0000)" in rows[systems[1]]
    assert "(p 0.0099)" in rows[systems[2]]


def test_several_tokenisations_and_references(texts: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(texts)
    command = ["one", "--reference", "ref", "two", "--tokenize", "13a", "none"]
    assert ended(bleu.main, [*command, "--metrics", "bleu"]) == 0
    done = capsys.readouterr().out
    head, row = done.splitlines()[:2]
    assert head.split() == ["system", "BLEU", "13a", "BLEU", "none"]
    assert len(row.split()) == 3
    assert "nrefs:2" in done
    assert ended(bleu.main, ["ref", "--reference", "ref", "--metrics", "bleu"]) == 0
    assert "100.00" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing", "--reference", "ref"], "missing: no such file"),
        (["short", "--reference", "ref"], "short: has 1 lines, expected 60"),
        (["empty", "--reference", "ref"], "empty: the file is empty"),
        (["one", "one", "--reference", "ref"], "the same system is given twice"),
    ],
)
def test_errors_are_one_line(
    texts: Path, monkeypatch, arguments: list[str], message: str, capsys
) -> None:
    monkeypatch.chdir(texts)
    (texts / "short").write_text("a\n")
    (texts / "empty").write_text("")
    assert ended(bleu.main, arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("bleu.py: error: ")
    assert message in line
