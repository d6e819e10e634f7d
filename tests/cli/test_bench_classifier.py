"""The benchmark of a linear classifier."""

import sys

from tools.bench import classifier


def test_each_loss_has_a_row(monkeypatch, capsys):
    sizes = ["--rows", "300", "--features", "4", "--classes", "5", "--epochs", "30"]
    monkeypatch.setattr(sys, "argv", ["classifier", *sizes])
    classifier.main()
    rows = capsys.readouterr().out.splitlines()[-2:]
    assert rows[0].startswith("| cross_entropy | ")
    assert rows[1].startswith("| entmax_loss, alpha 2 | ")
    for row in rows:
        assert float(row.split("|")[4]) > 40  # of five classes
