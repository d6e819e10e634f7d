"""Trainings in several processes that are refused before they start."""

from pathlib import Path

import pytest

from onmt_entmax.cli.train import main as train
from onmt_entmax.parallel.processes import ProcessError
from tests.in_process import refusal
from tests.toy import write_config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            {"transforms": ["sentencepiece"], "tgt_subword_nbest": -1},
            "tgt_subword_nbest: the transform sentencepiece",
            id="random subwords",
        ),
        pytest.param(
            {"world_size": 3},
            "takes 3 batches .*, which 2 processes cannot share evenly",
            id="a batch is left over",
        ),
    ],
)
def test_several_processes_refuse_what_they_cannot_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], message: str
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    config = write_config(tmp_path, **changes)
    with pytest.raises(ProcessError, match=message):
        train(["-config", str(config)])
    assert not (tmp_path / "run").exists()


def test_processes_that_nobody_started_are_an_error_of_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    line = refusal(train, ["-config", write_config(tmp_path)], progress=True)
    assert line.startswith("train.py: error: WORLD_SIZE says that there are 2 processes")
