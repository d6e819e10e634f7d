"""`onmt-entmax predict` overwrites no input, and writes no file twice."""

import os
import subprocess
from pathlib import Path

import pytest

from onmt_entmax.cli import predict
from tests.cli.tables import write_table
from tests.commands import ENVIRONMENT, console
from tests.in_process import refusal


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--output", "words.tsv"), id="output"),
        pytest.param(("--output", "."), id="folder of the output"),
        pytest.param(("--skip-bad", "words.tsv"), id="bad rows"),
        pytest.param(("--output", "link.tsv"), id="a link"),
    ],
)
def test_an_input_is_never_overwritten(
    phones_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(Path("words.tsv"), "ab")
    os.link("words.tsv", "link.tsv")
    message = "is read, and would be overwritten"
    assert message in refusal(predict.main, [phones_model, "words.tsv", *options])
    assert Path("words.tsv").read_text() == "ab\n"


@pytest.mark.parametrize("name", ["out.tsv", "link.tsv"])
def test_bad_rows_and_predictions_are_not_written_to_one_file(
    phones_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(Path("words.tsv"), "ab")
    os.symlink("out.tsv", "link.tsv")
    arguments = [phones_model, "words.tsv", "--output", "out.tsv", "--skip-bad", name]
    assert f"{name}: is to be written twice" in refusal(predict.main, arguments)


@pytest.mark.parametrize(
    ("output", "skip_bad"),
    [("out.tsv", "/dev/stdout"), ("/dev/stdout", "out.tsv"), ("/dev/stdout", "/dev/fd/1")],
)
def test_bad_rows_and_predictions_are_not_written_to_a_file_and_its_stream(
    phones_model: Path, tmp_path: Path, output: str, skip_bad: str
) -> None:
    write_table(tmp_path / "words.tsv", "ab")
    arguments = ["predict", phones_model, "words.tsv", "--output", output, "--skip-bad", skip_bad]
    with (tmp_path / "out.tsv").open("wb") as stdout:
        ended = subprocess.run(
            [*console(), *arguments],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ended.returncode == 2
    assert f"{skip_bad}: is to be written twice".encode() in ended.stderr


def test_bad_rows_and_predictions_may_go_to_two_streams_of_one_terminal(
    phones_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both streams are names of one device there."""
    monkeypatch.chdir(tmp_path)
    write_table(Path("words.tsv"), "ab", "ab\tx\ty")
    command = [*console(), "predict", phones_model, "words.tsv"]
    streams = ["--columns", "source", "--output", "/dev/stdout", "--skip-bad", "/dev/stderr"]
    printed = subprocess.run(
        [*command, *streams],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    ).stdout
    assert b"ab\tx\ty\n" in printed
