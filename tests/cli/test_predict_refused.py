"""`onmt-entmax predict`: bad rows, and what is refused before anything is predicted."""

import io
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import predict
from tests.cli.predicting import predicted
from tests.cli.tables import write_table
from tests.commands import CONSOLE, ENVIRONMENT
from tests.in_process import refusal

# --- bad rows ---


class Tables(NamedTuple):
    """Tables of three and two rows, one of which is bad in each, and how they are predicted."""

    first: Path
    second: Path
    output: Path
    """The folder of the predicted tables."""

    @property
    def arguments(self) -> tuple[object, ...]:
        """The arguments of the call, without the model."""
        return (self.first, self.second, "--columns", "source,target", "--output", self.output)


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    first = write_table(tmp_path / "a.tsv", "ab\t", "\tp", "da\t")
    second = write_table(tmp_path / "b.tsv", "a\tb\tc", "c\t")
    return Tables(first, second, tmp_path / "out")


def test_all_bad_rows_are_named_before_anything_is_predicted(
    phones_model: Path, tables: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    assert predicted(phones_model, *tables.arguments) == 2
    first, second, error = capsys.readouterr().err.splitlines()
    assert first == f"warning: {tables.first}:2: source is empty"
    assert second.startswith(f"warning: {tables.second}:1: expected 2 columns")
    assert "2 of 5 rows cannot be read" in error
    assert not tables.output.exists()


@pytest.fixture
def bad_rows(phones_model: Path, tables: Tables, tmp_path: Path) -> Path:
    """The file that receives the bad rows of a prediction, which leaves them out."""
    path = tmp_path / "bad"
    assert predicted(phones_model, *tables.arguments, "--skip-bad", path) == 0
    return path


@pytest.mark.usefixtures("bad_rows")
def test_bad_rows_are_left_out_on_request(tables: Tables, best_targets: dict[str, str]) -> None:
    lines = (tables.output / "a.tsv").read_text().splitlines()
    assert lines == [f"{source}\t{best_targets[source]}" for source in ("ab", "da")]


def test_bad_rows_are_written_with_their_places(tables: Tables, bad_rows: Path) -> None:
    rows = [line.split("\t", 2) for line in bad_rows.read_text().splitlines()]
    assert [(place, row) for place, _reason, row in rows] == [
        (f"{tables.first}:2", "\tp"),
        (f"{tables.second}:1", "a\tb\tc"),
    ]


def test_a_table_of_bad_rows_alone_comes_back_empty(
    phones_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, output = write_table(tmp_path / "a.tsv", "\tp", "\tq"), tmp_path / "out.tsv"
    options = ("--columns", "source,target", "--skip-bad", tmp_path / "bad")
    assert predicted(phones_model, table, "--output", output, *options) == 0
    assert output.read_text() == ""
    assert f"wrote {output}: 0 rows\n" in capsys.readouterr().err


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_a_table_of_bad_rows_alone_does_not_stop_the_others(
    phones_model: Path, tmp_path: Path, best_targets: dict[str, str], names: str
) -> None:
    """Whether it is the first or the last one."""
    bad, good = (tmp_path / name for name in names)
    write_table(bad, "\tp")
    write_table(good, "ab\t")
    output = tmp_path / "out"
    options = ("--columns", "source,target", "--skip-bad", tmp_path / "bad")
    assert (
        predicted(phones_model, tmp_path / "a", tmp_path / "b", "--output", output, *options) == 0
    )
    assert (output / good.name).read_text() == f"ab\t{best_targets['ab']}\n"
    assert sorted(path.name for path in output.iterdir()) == ["a", "b"]


# --- refusals ---


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
def test_bad_rows_and_predictions_are_not_written_to_a_file_and_a_stream_that_is_that_file(
    phones_model: Path, tmp_path: Path, output: str, skip_bad: str
) -> None:
    write_table(tmp_path / "words.tsv", "ab")
    arguments = ["predict", phones_model, "words.tsv", "--output", output, "--skip-bad", skip_bad]
    with (tmp_path / "out.tsv").open("wb") as stdout:
        ended = subprocess.run(
            [*CONSOLE, *arguments],
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
    """Each stream is another name of the same device there."""
    monkeypatch.chdir(tmp_path)
    write_table(Path("words.tsv"), "ab", "ab\tx\ty")
    command = [*CONSOLE, "predict", phones_model, "words.tsv"]
    streams = ["--columns", "source", "--output", "/dev/stdout", "--skip-bad", "/dev/stderr"]
    printed = subprocess.run(
        [*command, *streams],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    ).stdout
    assert b"ab\tx\ty\n" in printed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param("--columns target", "--columns: source is missing", id="no source"),
        pytest.param(
            "--columns source,word", "--columns: 'word' is none of source, target", id="no column"
        ),
        pytest.param("--columns source,source", "--columns: source is there twice", id="twice"),
        pytest.param("--language german", "the model reads none", id="no languages"),
        pytest.param("--n_best 0", "--n_best: must be ", id="no outputs"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(
    phones_model: Path, tmp_path: Path, options: str, message: str
) -> None:
    table = write_table(tmp_path / "words.tsv", "ab")
    assert message in refusal(predict.main, [phones_model, table, *options.split()])


def test_tables_of_one_name_are_refused(phones_model: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    first, second = (
        write_table(folder / "words.tsv", "ab") for folder in (tmp_path, tmp_path / "a")
    )
    output = tmp_path / "out"
    message = f"{first} and {second} would both be written to {output}/words.tsv"
    assert message in refusal(predict.main, [phones_model, first, second, "--output", output])


def test_several_tables_need_a_folder(phones_model: Path, tmp_path: Path) -> None:
    tables = [write_table(tmp_path / name, "ab") for name in ("a.tsv", "b.tsv")]
    assert "need --output, a folder" in refusal(predict.main, [phones_model, *tables])


def test_a_file_is_no_folder_for_tables(phones_model: Path, tmp_path: Path) -> None:
    tables = [write_table(tmp_path / name, "ab") for name in ("a.tsv", "b.tsv")]
    output = write_table(tmp_path / "out", "before")
    message = refusal(predict.main, [phones_model, *tables, "--output", output])
    assert f"--output {output}: is a file, and several tables need a folder" in message
    assert output.read_text() == "before\n"


def test_a_standard_input_that_is_no_utf8_is_named(
    phones_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"ab\n\xff\n")))
    assert "error: standard input:2: not UTF-8" in refusal(predict.main, [phones_model, "-"])


def test_a_prediction_with_details_is_not_taken_for_a_table_of_one_column(
    phones_model: Path, tmp_path: Path
) -> None:
    details = write_table(tmp_path / "out.tsv", "ab\tp\t1\t0.9\toptimal\t")
    message = refusal(predict.main, [phones_model, details, "--columns", "source"])
    assert "out.tsv: 6 columns, such as" in message
    assert "--columns names 1: source" in message
