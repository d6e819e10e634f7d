"""`onmt-entmax predict` that was killed or interrupted: the same command continues it."""

import json
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from onmt_entmax import Transducer
from onmt_entmax.cli import predict_tables
from onmt_entmax.files.continued import Continued
from onmt_entmax.strings.task import Query
from tests.cli.predicting import HEADED, predicted
from tests.cli.tables import write_table
from tests.commands import run
from tests.string_models import write_phones


@pytest.fixture(autouse=True)
def windows_of_two_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the output after every two rows, rather than after many."""
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
    done = run("tests/cli/killed_prediction.py", phones_model, table, "--output", output)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert output.read_text() == "before\n"
    return folder


@pytest.fixture
def interrupted(killed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Prediction:
    """A copy of that folder; what the killed process printed is not captured any more."""
    capsys.readouterr()
    shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
    return Prediction(tmp_path / "words.tsv", tmp_path / "out.tsv")


def predicted_at_once(folder: Path, *arguments: object) -> bytes:
    """Return the output of a prediction that nothing interrupts; the model comes first."""
    output = folder / "whole.tsv"
    assert predicted(*arguments, "--output", output) == 0
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
    assert predicted(phones_model, interrupted.table, "--output", interrupted.output) == 0
    assert "continued after 4 of 7 rows" in capsys.readouterr().err
    assert queried == ["ba", "bc", "dd"]


def test_a_continued_output_is_byte_for_byte_that_of_one_prediction(
    phones_model: Path, interrupted: Prediction, tmp_path: Path
) -> None:
    assert predicted(phones_model, interrupted.table, "--output", interrupted.output) == 0
    expected = predicted_at_once(tmp_path, phones_model, interrupted.table)
    assert interrupted.output.read_bytes() == expected


def test_a_continued_prediction_leaves_no_other_file(
    phones_model: Path, interrupted: Prediction, tmp_path: Path
) -> None:
    assert predicted(phones_model, interrupted.table, "--output", interrupted.output) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.tsv", "words.tsv"]


# --- with another model, table or options ----------------------------------------------------


class Change(NamedTuple):
    """What is not as in the killed prediction."""

    last_word: str = "dd"
    model_seed: int | None = None
    options: tuple[object, ...] = ()
    analogies: tuple[str, ...] = ()
    """Rows of a training table."""


class ChangedPrediction(NamedTuple):
    """The arguments of a prediction with a change, the model first, and its output."""

    arguments: tuple[object, ...]
    output: Path


@pytest.fixture(
    params=[
        pytest.param(Change(last_word="ddd"), id="table"),
        pytest.param(Change(model_seed=13), id="model"),
        pytest.param(Change(options=("--beam_size", 4)), id="beam"),
        pytest.param(Change(options=("--matmul_dtype", "bfloat16")), id="products"),
        pytest.param(Change(analogies=("ab\tp a", "cb\tp j")), id="analogies"),
    ]
)
def changed(
    request: pytest.FixtureRequest, phones_model: Path, interrupted: Prediction, tmp_path: Path
) -> ChangedPrediction:
    change: Change = request.param
    table, output = interrupted
    table.write_text(table.read_text().replace("dd", change.last_word))
    model = phones_model
    if change.model_seed is not None:
        model = write_phones(tmp_path / "model", change.model_seed)
    options = change.options
    if change.analogies:
        options += ("--analogies", write_table(tmp_path / "train.tsv", *change.analogies))
    return ChangedPrediction((model, table, *options), output)


def test_a_changed_prediction_starts_anew_and_says_so(
    changed: ChangedPrediction, capsys: pytest.CaptureFixture[str]
) -> None:
    assert predicted(*changed.arguments, "--output", changed.output) == 0
    printed = capsys.readouterr().err
    assert "begun with another model, table or options; starts anew" in printed
    assert "continued" not in printed


def test_a_changed_prediction_keeps_nothing_of_the_output(
    changed: ChangedPrediction, tmp_path: Path
) -> None:
    assert predicted(*changed.arguments, "--output", changed.output) == 0
    assert changed.output.read_bytes() == predicted_at_once(tmp_path, *changed.arguments)


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
    assert output.read_bytes() == predicted_at_once(tmp_path, phones_model, table)


# --- after Ctrl-C ----------------------------------------------------------------------------


@pytest.fixture(params=[1, 2], ids=["after the heading", "after the first window"])
def ended(
    request: pytest.FixtureRequest,
    phones_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Prediction:
    """A prediction that Ctrl-C ended after some parts of its output; its errors are captured."""
    table, output = write_table(tmp_path / "words.tsv", *HEADED), tmp_path / "out.tsv"

    class Interrupted(Continued):
        parts = 0

        def write(self, text: str, progress: Mapping[str, Any]) -> None:
            if self.parts == request.param:
                raise KeyboardInterrupt
            self.parts += 1
            super().write(text, progress)

    capsys.readouterr()  # what the set-up printed
    with monkeypatch.context() as patch:
        patch.setattr(predict_tables, "Continued", Interrupted)
        assert predicted(phones_model, table, "--output", output) == 130
    return Prediction(table, output)


def test_an_interrupt_says_how_to_go_on(
    ended: Prediction, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "note: the same command continues this prediction" in capsys.readouterr().err


def test_an_interrupt_leaves_no_output(ended: Prediction) -> None:
    assert not ended.output.exists()


def test_a_prediction_goes_on_after_an_interrupt(
    phones_model: Path, ended: Prediction, tmp_path: Path
) -> None:
    assert predicted(phones_model, ended.table, "--output", ended.output) == 0
    expected = predicted_at_once(tmp_path, phones_model, ended.table)
    assert ended.output.read_bytes() == expected
