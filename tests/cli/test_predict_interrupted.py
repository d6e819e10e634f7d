"""`onmt-entmax predict` that Ctrl-C ends: it says how to go on, and the same command does."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.cli import predict_tables
from onmt_entmax.files.continued import Continued
from tests.cli.predicting import HEADED, TableAndOutput, predicted, predicted_at_once
from tests.cli.tables import write_table


@pytest.fixture(params=[1, 2], ids=["after the heading", "after the first window"])
def interrupted(
    request: pytest.FixtureRequest,
    windows_of_two_rows: None,
    phones_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> TableAndOutput:
    """A prediction that Ctrl-C ended when it had written one or two parts of its output."""
    most_parts: int = request.param

    class Interrupted(Continued):
        parts = 0

        def write(self, text: str, progress: Mapping[str, Any]) -> None:
            if self.parts == most_parts:
                raise KeyboardInterrupt
            self.parts += 1
            super().write(text, progress)

    table, output = write_table(tmp_path / "words.tsv", *HEADED), tmp_path / "out.tsv"
    capsys.readouterr()  # what other fixtures printed
    with monkeypatch.context() as patch:
        patch.setattr(predict_tables, "Continued", Interrupted)
        assert predicted(phones_model, table, "--output", output) == 130  # as of an interrupt
    return TableAndOutput(table, output)


@pytest.mark.usefixtures("interrupted")
def test_an_interrupt_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert "note: the same command continues this prediction" in capsys.readouterr().err


def test_an_interrupt_leaves_no_output(interrupted: TableAndOutput) -> None:
    assert not interrupted.output.exists()


def test_a_prediction_that_goes_on_after_an_interrupt_has_the_same_output(
    phones_model: Path, interrupted: TableAndOutput, tmp_path: Path
) -> None:
    table, output = interrupted
    assert predicted(phones_model, table, "--output", output) == 0
    assert output.read_bytes() == predicted_at_once(tmp_path, phones_model, table)
