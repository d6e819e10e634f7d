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


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        pytest.param({"RANK": "1"}, "RANK: is 1, but WORLD_SIZE is 1, ", id="a rank alone"),
        pytest.param(
            {"RANK": "2", "WORLD_SIZE": "2"}, "RANK: is 2, but WORLD_SIZE is 2, ", id="too large"
        ),
        pytest.param({"WORLD_SIZE": "0"}, "RANK: is 0, but WORLD_SIZE is 0, ", id="no process"),
        pytest.param({"WORLD_SIZE": "two"}, "WORLD_SIZE: .*, not 'two'; start", id="a word"),
        pytest.param({"RANK": "-1"}, "RANK: .*, not '-1'; start", id="a negative rank"),
        pytest.param({"LOCAL_RANK": ""}, "LOCAL_RANK: .*, not ''; start", id="no number"),
    ],
)
def test_an_environment_without_a_first_process_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    """A process of rank 1 that is alone would train, and save nothing."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ProcessError, match=message):
        train(["-config", str(write_config(tmp_path))])
    assert not (tmp_path / "run").exists()
