"""The benchmark of a Transformer's training steps."""

from pathlib import Path

import pytest

from tests.commands import json_lines
from tests.ended import ended
from tools.bench import transformer


def test_the_contenders_take_the_same_steps(tmp_path: Path, monkeypatch, capsys) -> None:
    """Without dropout, OpenNMT-py's modules and ours with softmax have one loss."""
    output = tmp_path / "results.jsonl"
    tiny = transformer.Size(layers=1, hidden=16, heads=2, feed_forward=32)
    monkeypatch.setitem(transformer.SIZES, "small", tiny)
    small = "--batch 8 --warmup 1 --steps 3 --dropout 0 --output".split()
    assert ended(transformer.main, [*small, str(output)]) == 0
    found = json_lines(output)
    assert [line["contender"] for line in found] == ["softmax", "1.5", "learned", "stock"]
    softmax, _, _, stock = found
    assert stock["loss"] == pytest.approx(softmax["loss"], abs=2e-3)
    assert all(line["ms"] > 0 for line in found)
    assert "contender learned ms " in capsys.readouterr().out
