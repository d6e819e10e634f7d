"""A training of two processes, one of which stops: the other one ends, and names it."""

import os
import signal
from pathlib import Path

import pytest

from tests.child_processes import children_of
from tests.parallel.torchrun import needs_proc, started_training, training_options
from tests.toy import write_config

# Trains as the command does, but a process counts as lost after six seconds.
_TRAIN = """
from onmt_entmax.cli.ending import run_script
from onmt_entmax.cli.train import main
from onmt_entmax.parallel import contact
contact.SILENCE, contact._BEAT = 6, 0.5
run_script(main)
"""


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment variables of a process."""
    text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    return dict(line.partition("=")[::2] for line in text.split("\0"))


@needs_proc
@pytest.mark.parametrize(
    "stopped",
    [
        pytest.param(0, marks=pytest.mark.slow, id="the first process is stopped"),
        pytest.param(1, id="the second process is stopped"),
    ],
)
def test_a_process_ends_when_the_other_one_is_stopped(tmp_path: Path, stopped: int) -> None:
    """The other one cannot tell this from a network that is cut between two machines."""
    endless = 10**6
    config = write_config(tmp_path, **training_options(tmp_path / "run", train_steps=endless))
    script = tmp_path / "train.py"
    script.write_text(_TRAIN)
    with started_training(config, str(script)) as process:
        by_rank = {int(environment_of(pid)["RANK"]): pid for pid in children_of(process.pid)}
        os.kill(by_rank[stopped], signal.SIGSTOP)
        line = next((line for line in process.stderr if "has not been heard of" in line), None)
    assert line is not None, "the training ended, and named no lost process"
    assert line.startswith(f"train.py: error: process {stopped} on ")
    assert line.endswith(f"continue from the last checkpoint with -train_from {tmp_path}/run\n")
