"""`onmt-entmax predict` that was killed or interrupted: the same command continues it."""

import json
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax import Transducer
from onmt_entmax.cli import predict_tables
from onmt_entmax.files.continued import Continued
from onmt_entmax.strings.task import Query
from tests.cli.predicting import HEADED, predicted
from tests.cli.tables import write_table
from tests.commands import run
from tests.string_models import write_phones

# A script that predicts in windows of two rows, and kills itself after it has written the heading,
# two windows, and half a line of the third one.
DYING = """
import os, signal, sys
from onmt_entmax.cli import predict, predict_tables
from onmt_entmax.files.continued import Continued

predict_tables.WINDOW = 2
write = Continued.write
complete = []

def write_or_die(self, text, progress):
    write(self, text, progress)
    complete.append(text)
    if len(complete) == 3:
        self._file.write(b"half a li")
        self._file.flush()
        os.kill(os.getpid(), signal.SIGKILL)

Continued.write = write_or_die
predict.main(sys.argv[1:])
"""


@pytest.fixture(autouse=True)
def windows_of_two_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict_tables, "WINDOW", 2)


# --- after a kill ----------------------------------------------------------------------------


class Prediction(NamedTuple):
    """A table and the output of its prediction."""

    table: Path
    output: Path


@pytest.fixture(scope="module")
def killed(phones_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table of seven words, and its output, of which a kill left four rows."""
    folder = tmp_path_factory.mktemp("killed")
    table = write_table(folder / "words.tsv", *HEADED, "ba\t", "bc\t", "dd\t")
    output = write_table(folder / "out.tsv", "before")
    script = tmp_path_factory.mktemp("script") / "dying.py"
    script.write_text(DYING)
    done = run(str(script), phones_model, table, "--output", output)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert output.read_text() == "before\n"
    return folder


@pytest.fixture
def interrupted(killed: Path, tmp_path: Path) -> Prediction:
    shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
    return Prediction(tmp_path / "words.tsv", tmp_path / "out.tsv")


def predicted_at_once(model: Path, table: Path, folder: Path, *options: object) -> bytes:
    """Return the output of a prediction that nothing interrupts."""
    output = folder / "whole.tsv"
    assert predicted(model, table, "--output", output, *options) == 0
    content = output.read_bytes()
    output.unlink()
    return content


@pytest.fixture
def queried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that are predicted, in order."""
    sources: list[str] = []
    unchanged = Transducer.predictions

    def predictions(self: Transducer, queries: Sequence[Query], batch_size: int) -> object:
        queries = list(queries)
        sources.extend(query.source for query in queries)
        return unchanged(self, queries, batch_size)

    monkeypatch.setattr(Transducer, "predictions", predictions)
    return sources


def test_a_killed_prediction_is_continued_by_the_same_command(
    phones_model: Path,
    interrupted: Prediction,
    queried: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Rows that were written are not predicted again."""
    capsys.readouterr()
    assert predicted(phones_model, interrupted.table, "--output", interrupted.output) == 0
    assert "continued after 4 of 7 rows" in capsys.readouterr().err
    assert queried == ["ba", "bc", "dd"]


def test_a_continued_output_is_byte_for_byte_that_of_one_prediction(
    phones_model: Path, interrupted: Prediction, tmp_path: Path
) -> None:
    assert predicted(phones_model, interrupted.table, "--output", interrupted.output) == 0
    expected = predicted_at_once(phones_model, interrupted.table, tmp_path)
    assert interrupted.output.read_bytes() == expected


def test_a_continued_prediction_leaves_no_other_file(
    phones_model: Path, interrupted: Prediction, tmp_path: Path
) -> None:
    assert predicted(phones_model, interrupted.table, "--output", interrupted.output) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.tsv", "words.tsv"]


# --- after other work ------------------------------------------------------------------------


class Work(NamedTuple):
    """A model and options, one of which, or the table, is not that of the killed prediction."""

    model: Path
    options: tuple[object, ...] = ()


@pytest.fixture
def other_table(phones_model: Path, interrupted: Prediction) -> Work:
    table = interrupted.table
    table.write_text(table.read_text().replace("dd", "ddd"))
    return Work(phones_model)


@pytest.fixture
def other_model(tmp_path: Path) -> Work:
    return Work(write_phones(tmp_path / "model", 13))


@pytest.fixture
def other_beam(phones_model: Path) -> Work:
    return Work(phones_model, ("--beam_size", 4))


@pytest.fixture
def other_products(phones_model: Path) -> Work:
    return Work(phones_model, ("--matmul_dtype", "bfloat16"))


@pytest.fixture
def analogies(phones_model: Path, interrupted: Prediction) -> Work:
    training = write_table(interrupted.table.with_name("train.tsv"), "ab\tp a", "cb\tp j")
    return Work(phones_model, ("--analogies", training))


@pytest.fixture(params=["other_table", "other_model", "other_beam", "other_products", "analogies"])
def other_work(request: pytest.FixtureRequest) -> Work:
    """Each of the fixtures above."""
    work: Work = request.getfixturevalue(request.param)
    return work


def test_other_work_starts_anew_and_says_so(
    other_work: Work, interrupted: Prediction, capsys: pytest.CaptureFixture[str]
) -> None:
    table, output = interrupted
    capsys.readouterr()
    assert predicted(other_work.model, table, "--output", output, *other_work.options) == 0
    printed = capsys.readouterr().err
    assert "begun with another model, table or options; starts anew" in printed
    assert "continued" not in printed


def test_other_work_keeps_nothing_of_the_output(
    other_work: Work, interrupted: Prediction, tmp_path: Path
) -> None:
    table, output = interrupted
    assert predicted(other_work.model, table, "--output", output, *other_work.options) == 0
    expected = predicted_at_once(other_work.model, table, tmp_path, *other_work.options)
    assert output.read_bytes() == expected


def test_with_a_damaged_record_a_prediction_starts_anew(
    phones_model: Path, interrupted: Prediction, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The record claims more bytes of output than there are."""
    table, output = interrupted
    (record,) = output.parent.glob(".*.json")
    content = json.loads(record.read_text())
    record.write_text(json.dumps({**content, "bytes": 10**6}))
    assert predicted(phones_model, table, "--output", output) == 0
    assert "starts anew" in capsys.readouterr().err
    assert output.read_bytes() == predicted_at_once(phones_model, table, tmp_path)


# --- after Ctrl-C ----------------------------------------------------------------------------


@pytest.fixture(params=[1, 2], ids=["after the heading", "after the first window"])
def interrupt(
    request: pytest.FixtureRequest,
    phones_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Prediction:
    """A prediction that Ctrl-C ended after some parts of its output; its errors are captured."""
    table, output = write_table(tmp_path / "words.tsv", *HEADED), tmp_path / "out.tsv"
    unchanged: Callable[..., None] = Continued.write
    written: list[str] = []

    def write_or_end(self: Continued, text: str, progress: object) -> None:
        if len(written) == request.param:
            raise KeyboardInterrupt
        written.append(text)
        unchanged(self, text, progress)

    with monkeypatch.context() as patch:
        patch.setattr(Continued, "write", write_or_end)
        capsys.readouterr()
        assert predicted(phones_model, table, "--output", output) == 130
    return Prediction(table, output)


def test_an_interrupt_says_how_to_go_on(
    interrupt: Prediction, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "note: the same command continues this prediction" in capsys.readouterr().err


def test_an_interrupt_leaves_no_output(interrupt: Prediction) -> None:
    assert not interrupt.output.exists()


def test_a_prediction_goes_on_after_an_interrupt(
    phones_model: Path, interrupt: Prediction, tmp_path: Path
) -> None:
    assert predicted(phones_model, interrupt.table, "--output", interrupt.output) == 0
    expected = predicted_at_once(phones_model, interrupt.table, tmp_path)
    assert interrupt.output.read_bytes() == expected
