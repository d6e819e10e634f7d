"""Training in several processes: the same updates as with one, one writer, and resuming."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from onmt_entmax.cli.train import main as train
from onmt_entmax.parallel.processes import ProcessError
from tests.commands import succeed, weights
from tests.in_process import refusal
from tests.torchrun import run_both, settings
from tests.toy import write_config


def assert_close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    """Fail unless weights are the same but for the order in which gradients are summed."""
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


# Trains, and fails if threads of the process group remain: they may abort Python while it ends.
_TRAIN = """
import sys
from pathlib import Path
from onmt_entmax.cli.train import main
status = main(sys.argv[1:])
threads = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
sys.exit(status or [name for name in threads if "gloo" in name] or 0)
"""


class Runs(NamedTuple):
    """Trainings of the same batches by one process and by two.

    Attributes:
        config: configuration of both; it names the folder of the second.
        one: the run folder of one process.
        two: the run folder of two processes.
        errors: what the two processes wrote to the standard error.
    """

    config: Path
    one: Path
    two: Path
    errors: str


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("processes")
    one, two = folder / "one", folder / "two"
    succeed("train.py", "-config", write_config(folder, **settings(one, world_size=2)))
    config = write_config(folder, **settings(two))
    script = folder / "train.py"
    script.write_text(_TRAIN)
    processes = run_both(str(script), "-config", config)
    errors = "".join(process.stderr for process in processes)
    assert not any(process.returncode for process in processes), errors
    return Runs(config, one, two, errors)


def test_two_processes_train_the_weights_of_one_with_the_same_batches(runs: Runs) -> None:
    assert_close(weights(runs.one, 20), weights(runs.two, 20))


def test_one_of_two_processes_reports(runs: Runs) -> None:
    assert runs.errors.count("validation  step 20/20") == 1


def test_one_process_continues_what_two_began(runs: Runs, tmp_path: Path) -> None:
    """The weights are those of a run that one process began and continued."""
    longer = ["-config", runs.config, "-train_steps", 30, "-world_size", 2]
    one, two = tmp_path / "one", tmp_path / "two"
    for before, run in ((runs.one, one), (runs.two, two)):
        shutil.copytree(before, run)
        succeed("train.py", *longer, "-train_from", run, "-save_model", run)
    assert_close(weights(one, 30), weights(two, 30))


# --- refused starts --------------------------------------------------------------------------


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
