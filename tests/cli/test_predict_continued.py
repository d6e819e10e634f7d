"""`onmt-entmax predict` that was killed: the same command continues it, and no other."""

import json
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax import Transducer
from onmt_entmax.strings.task import Query
from tests.cli.predicting import HEADED, TableAndOutput, predicted, predicted_at_once
from tests.cli.tables import write_table
from tests.commands import run
from tests.string_models import write_phones

pytestmark = pytest.mark.usefixtures("windows_of_two_rows")

# --- the same command ---


@pytest.fixture(scope="module")
def killed(phones_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table of seven words; `predict` was killed after four rows of its output."""
    folder = tmp_path_factory.mktemp("killed")
    table = write_table(folder / "words.tsv", *HEADED, "ba\t", "bc\t", "dd\t")
    output = write_table(folder / "out.tsv", "before")
    done = run("tests/cli/killed_prediction.py", phones_model, table, "--output", output)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert output.read_text() == "before\n"
    return folder


@pytest.fixture
def stopped(killed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> TableAndOutput:
    """A copy of that folder, in which tests continue."""
    capsys.readouterr()  # what other fixtures printed
    shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
    return TableAndOutput(tmp_path / "words.tsv", tmp_path / "out.tsv")


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
    phones_model: Path, stopped: TableAndOutput, capsys: pytest.CaptureFixture[str]
) -> None:
    assert predicted(phones_model, stopped.table, "--output", stopped.output) == 0
    assert "continued after 4 of 7 rows" in capsys.readouterr().err


def test_rows_that_were_written_are_not_predicted_again(
    phones_model: Path, stopped: TableAndOutput, queried: list[str]
) -> None:
    assert predicted(phones_model, stopped.table, "--output", stopped.output) == 0
    assert queried == ["ba", "bc", "dd"]


def test_a_continued_output_is_byte_for_byte_that_of_one_prediction(
    phones_model: Path, stopped: TableAndOutput, tmp_path: Path
) -> None:
    assert predicted(phones_model, stopped.table, "--output", stopped.output) == 0
    expected = predicted_at_once(tmp_path, phones_model, stopped.table)
    assert stopped.output.read_bytes() == expected


def test_a_continued_prediction_leaves_no_other_file(
    phones_model: Path, stopped: TableAndOutput, tmp_path: Path
) -> None:
    assert predicted(phones_model, stopped.table, "--output", stopped.output) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.tsv", "words.tsv"]


# --- with another model, table or options ---


Arguments = tuple[object, ...]


def other_word(model: Path, table: Path, folder: Path) -> Arguments:
    table.write_text(table.read_text().replace("dd", "ddd"))
    return model, table


def other_model(model: Path, table: Path, folder: Path) -> Arguments:
    return write_phones(folder / "model", seed=13), table


def other_beam(model: Path, table: Path, folder: Path) -> Arguments:
    return model, table, "--beam_size", 4


def other_products(model: Path, table: Path, folder: Path) -> Arguments:
    return model, table, "--matmul_dtype", "bfloat16"


def with_analogies(model: Path, table: Path, folder: Path) -> Arguments:
    training = write_table(folder / "train.tsv", "ab\tp a", "cb\tp j")
    return model, table, "--analogies", training


class ChangedPrediction(NamedTuple):
    """A prediction that differs from the killed one.

    Attributes:
        arguments: the arguments of the command without `--output`, the model first.
        output: the output of the killed prediction.
    """

    arguments: Arguments
    output: Path


@pytest.fixture(params=[other_word, other_model, other_beam, other_products, with_analogies])
def changed(
    request: pytest.FixtureRequest, phones_model: Path, stopped: TableAndOutput, tmp_path: Path
) -> ChangedPrediction:
    arguments: Arguments = request.param(phones_model, stopped.table, tmp_path)
    return ChangedPrediction(arguments, stopped.output)


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
    phones_model: Path, stopped: TableAndOutput, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The record claims more bytes of output than there are."""
    table, output = stopped
    (record,) = output.parent.glob(".*.json")
    content = json.loads(record.read_text())
    record.write_text(json.dumps({**content, "bytes": 10**6}))
    assert predicted(phones_model, table, "--output", output) == 0
    assert "starts anew" in capsys.readouterr().err
    assert output.read_bytes() == predicted_at_once(tmp_path, phones_model, table)
