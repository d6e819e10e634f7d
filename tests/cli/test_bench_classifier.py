"""The benchmark of a linear classifier."""

import pytest

from tests.in_process import exit_status
from tools.bench import classifier

CHANCE = 20  # per cent: one of five classes


@pytest.mark.slow
def test_each_loss_has_a_row_and_learns(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--rows", "300", "--features", "4", "--classes", "5", "--epochs", "30"]
    assert exit_status(classifier.main, sizes) == 0
    *_, first, second = capsys.readouterr().out.splitlines()
    rows = [row.strip("| ").split(" | ") for row in (first, second)]
    assert [row[0] for row in rows] == ["cross_entropy", "entmax_loss, alpha 2"]
    accuracies = [float(accuracy) for _, _seconds, _memory, accuracy in rows]
    assert min(accuracies) > 2 * CHANCE
