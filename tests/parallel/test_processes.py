"""Training in several processes: the same updates as with one, one writer, and resuming."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from tests.commands import succeed, weights
from tests.parallel.torchrun import needs_proc, run_both, training_options
from tests.toy import write_config


def assert_close(actual: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    """Fail unless weights are equal, up to the rounding of gradients summed in another order."""
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


# Trains. Prints the names of the process's threads before its process group ends, and after the
# training.
_TRAIN = """
import sys
from pathlib import Path
import torch.distributed as dist
from onmt_entmax.cli.train import main

def print_threads(when):
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    print(f"threads {when}: {names}", file=sys.stderr)

end_group = dist.destroy_process_group

def print_and_end_group(*arguments):
    print_threads("before the end of the group")
    end_group(*arguments)

dist.destroy_process_group = print_and_end_group
status = main(sys.argv[1:])
print_threads("after training")
sys.exit(status)
"""


class Runs(NamedTuple):
    """Trainings with the same batches by one process and by two.

    Attributes:
        config: configuration of the training by two processes.
        one: run folder of the one process.
        two: run folder of the two processes.
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
    succeed("train.py", "-config", write_config(folder, **training_options(one, world_size=2)))
    config = write_config(folder, **training_options(two))
    script = folder / "train.py"
    script.write_text(_TRAIN)
    ended = run_both(str(script), "-config", config)
    assert not any(ended.statuses), ended.errors
    return Runs(config, one, two, ended.errors)


def test_two_processes_train_the_weights_of_one_with_the_same_batches(runs: Runs) -> None:
    assert_close(weights(runs.two, 20), expected=weights(runs.one, 20))


def test_one_of_two_processes_reports(runs: Runs) -> None:
    assert runs.errors.count("validation  step 20/20") == 1


@needs_proc
def test_no_thread_of_the_process_group_remains(runs: Runs) -> None:
    """Such a thread could abort Python while the interpreter ends."""
    lines = [line for line in runs.errors.splitlines() if line.startswith("threads ")]
    before = [line for line in lines if line.startswith("threads before the end of the group")]
    after = [line for line in lines if line.startswith("threads after training")]
    assert len(before) == len(after) == 2, "a line of each process"
    assert all("gloo" in line for line in before), "the test does not see such threads"
    assert not any("gloo" in line for line in after)


def test_one_process_continues_what_two_began(runs: Runs, tmp_path: Path) -> None:
    """The weights are those of a run that one process began and continued."""
    longer = ["-config", runs.config, "-train_steps", 30, "-world_size", 2]
    one, two = tmp_path / "one", tmp_path / "two"
    for before, run in ((runs.one, one), (runs.two, two)):
        shutil.copytree(before, run)
        succeed("train.py", *longer, "-train_from", run, "-save_model", run)
    assert_close(weights(two, 30), expected=weights(one, 30))
