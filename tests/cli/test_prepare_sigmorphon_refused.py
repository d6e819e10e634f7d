"""`prepare sigmorphon`: settings of the shared task, and bad input."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax.cli import prepare_sigmorphon
from tests.cli.preparing import read_lines
from tests.cli.sigmorphon import run_prepare_sigmorphon
from tests.in_process import refusal


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of two languages; only Welsh has the setting `high`."""
    folder = tmp_path / "data"
    folder.mkdir()
    for language in ("old-irish", "welsh"):
        for part in ("train-low", "dev"):
            (folder / f"{language}-{part}").write_text("a\tab\tV;PST\n")
    (folder / "welsh-train-high").write_text("a\tab\tV;PST\r\nb c\tbc\tN\r\n")
    return folder


def test_of_all_languages_those_without_the_setting_are_left_out(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    run_prepare_sigmorphon("--data", data, "--setting", "high", "--out", out)
    assert "left out, no dev or no train-high: old-irish" in capsys.readouterr().out
    assert read_lines(out / "train.src") == ["lang=welsh +V +PST a", "lang=welsh +N b ▁ c"]
    assert read_lines(out / "dev.src") == ["lang=welsh +V +PST a"]


def check_refusal(arguments: Sequence[object], message: str, out: Path) -> None:
    """Fail unless the command prints one line with the message, and writes nothing."""
    assert message in refusal(prepare_sigmorphon.main, [*arguments, "--out", out])
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            "--setting hihg",
            "argument --setting: invalid choice: 'hihg' (choose from",
            id="no such setting",
        ),
        pytest.param(
            "--splits dve", "argument --splits: invalid choice: 'dve'", id="no such split"
        ),
        pytest.param(
            "--languages old-irsh",
            "no language 'old-irsh'; did you mean 'old-irish'?",
            id="no such language",
        ),
        pytest.param(
            "--setting high --languages old-irish",
            "no file old-irish-train-high; old-irish has dev, train-low",
            id="a language without the setting",
        ),
        pytest.param(
            "",
            "no language has <language>-dev and <language>-train; found only <language>-dev, "
            "<language>-train-high, <language>-train-low; --setting chooses train-low, ",
            id="no setting",
        ),
    ],
)
def test_wrong_choices_are_refused(data: Path, tmp_path: Path, options: str, message: str) -> None:
    check_refusal(["--data", data, *options.split()], message, tmp_path / "out")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(
            b"a,ab\n", ": columns source, tags between commas; no targets, but ", id="no targets"
        ),
        pytest.param(b'a,"ab,V\n', ": no tabs, and no row of a CSV file", id="open quote"),
        pytest.param(
            b"a\tab\tx\ty\n",
            ": 4 columns, not 3 (source, target, tags), or 2 without",
            id="too many columns",
        ),
        pytest.param(b"a\tab\tV\nb\t\xff\tV\n", ":2: not UTF-8 text", id="no text"),
    ],
)
def test_wrong_files_are_refused(data: Path, tmp_path: Path, content: bytes, message: str) -> None:
    (data / "welsh-dev").write_bytes(content)
    arguments = ["--data", data, "--setting", "low"]
    check_refusal(arguments, f"welsh-dev{message}", tmp_path / "out")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            "--data x", "expected either --data, or some of --train", id="folder and table"
        ),
        pytest.param("--setting low", "--setting and --splits choose among", id="setting"),
        pytest.param(
            "--language 'low german'", "'low german': must be one word", id="language of two words"
        ),
        pytest.param(
            "--columns lemma,form", "--columns: expected lemma, form", id="too few columns"
        ),
        pytest.param(
            "--columns lemma,form,form,tags", "--columns: target is there twice", id="column twice"
        ),
        pytest.param("", "a.tsv: cannot be read", id="no table"),
    ],
)
def test_wrong_options_of_a_table_are_refused(tmp_path: Path, options: str, message: str) -> None:
    check_refusal(["--train", "a.tsv", *shlex.split(options)], message, tmp_path / "out")
