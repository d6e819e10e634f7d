"""`onmt-entmax predict` as a process of its own: it reads a pipe, and `evaluate` reads its tables.

Other tests call the command's `main`.
"""

import subprocess
from pathlib import Path

from tests.cli.evaluating import run_evaluate
from tests.cli.tables import write_table
from tests.commands import ENVIRONMENT, ROOT, console, succeed


def test_the_real_command_reads_a_pipe(phones_model: Path, best_targets: dict[str, str]) -> None:
    command = [*console(), "predict", str(phones_model), "-"]
    done = subprocess.run(
        command, input="ab\nda\n", capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"ab\t{best_targets['ab']}\nda\t{best_targets['da']}\n"


def test_evaluate_scores_the_details_that_the_real_command_writes(
    phones_model: Path, best_targets: dict[str, str], tmp_path: Path
) -> None:
    """One of two predictions is right, and both are certified as optimal."""
    gold = write_table(tmp_path / "gold.tsv", f"ab\t{best_targets['ab']}", "da\tx")
    predictions = tmp_path / "predictions.tsv"
    succeed("onmt_entmax", "predict", phones_model, gold, "--output", predictions, "--details")
    evaluation = run_evaluate(tmp_path, predictions, "--reference", gold, "--model", phones_model)
    assert evaluation.content["all"]["accuracy"] == 1 / 2
    assert evaluation.content["all"]["certificates"] == {
        "optimal": {"share": 1.0, "accuracy": 1 / 2}
    }
