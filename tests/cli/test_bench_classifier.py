"""The benchmark of a linear classifier."""

import pytest

from tests.ended import ended
from tools.bench import classifier


@pytest.mark.slow
def test_each_loss_has_a_row(capsys):
    sizes = ["--rows", "300", "--features", "4", "--classes", "5", "--epochs", "30"]
    assert ended(classifier.main, sizes) == 0
    rows = capsys.readouterr().out.splitlines()[-2:]
    assert rows[0].startswith("| cross_entropy | ")
    assert rows[1].startswith("| entmax_loss, alpha 2 | ")
    for row in rows:
        assert float(row.split("|")[4]) > 40  # of five classes
