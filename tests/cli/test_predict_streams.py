"""`onmt-entmax predict`: the standard input, and the real command beside others."""

import io
import subprocess
from pathlib import Path

import pytest

from tests.cli.predicting import predicted
from tests.cli.tables import write_table
from tests.commands import ENVIRONMENT, ROOT, console, succeed


@pytest.mark.parametrize(
    ("text", "ending"), [("ab,\n", "csv"), ("ab;\n", "csv"), ("ab\t\n", "tsv"), ("ab\n", "tsv")]
)
def test_the_standard_input_has_the_ending_of_its_columns_in_a_folder(
    phones_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, ending: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    (tmp_path / "out").mkdir()
    assert predicted(phones_model, "-", "--output", tmp_path / "out") == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == [f"stdin.{ending}"]


def test_the_real_command_reads_a_pipe(
    phones_model: Path, best_targets: dict[str, str], tmp_path: Path
) -> None:
    command = [*console(), "predict", str(phones_model), "-"]
    done = subprocess.run(
        command, input="ab\nda\n", capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"ab\t{best_targets['ab']}\nda\t{best_targets['da']}\n"


def test_the_real_command_writes_a_table_that_evaluate_reads(
    phones_model: Path, best_targets: dict[str, str], tmp_path: Path
) -> None:
    """One of two predicted targets is right; the levels of both are counted."""
    gold = write_table(tmp_path / "gold.tsv", f"ab\t{best_targets['ab']}", "da\tx")
    output = tmp_path / "out.tsv"
    succeed("onmt_entmax", "predict", phones_model, gold, "--output", output, "--details")
    printed = succeed(
        "onmt_entmax", "evaluate", output, "--reference", gold, "--model", phones_model
    )
    figures = [line.split()[:3] for line in printed.splitlines()]
    assert ["average", "2", "50.00"] in figures  # queries, and accuracy in percent
    assert "certificates: percent of the queries" in printed
