"""Which modules a command imports: imports take most of the time of short commands."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.commands import ROOT

CODE = """
import gc, json, sys
from onmt_entmax.cli.main import main
sys.argv[0] = "onmt-entmax"
status = main()
print(json.dumps([status, gc.get_freeze_count(), sorted(sys.modules)]), file=sys.stderr)
"""


class Finished(NamedTuple):
    """A process at the end of a command."""

    modules: set[str]
    """Names of all imported modules."""
    frozen: int
    """Objects that the garbage collector does not look at."""


def finish(*arguments: object) -> Finished:
    """Run a command in a new interpreter; it must succeed."""
    command = [sys.executable, "-W", "ignore", "-c", CODE, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr  # of the code that prints the last line
    status, frozen, modules = json.loads(done.stderr.splitlines()[-1])
    assert status == 0, done.stderr
    return Finished(set(modules), frozen)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_imports_no_library(option: str) -> None:
    modules = finish(option).modules
    assert not modules & {"torch", "numpy", "yaml", "tqdm", "onmt", "matplotlib", "sacrebleu"}
    ours = {name.split(".")[1] for name in modules if name.startswith("onmt_entmax.")}
    assert ours <= {"cli", "errors", "exhaustion", "rules", "systems", "version"}


@pytest.fixture(scope="module")
def inflected(inflection_model: Path) -> Finished:
    """A process that has inflected a word."""
    return finish("inflect", "german", "ab", "V", "--model", inflection_model)


def test_inflecting_a_word_imports_nothing_of_training_and_pictures(inflected: Finished) -> None:
    """It needs torch and OpenNMT-py, with all that this imports."""
    modules = inflected.modules
    assert "torch" in modules
    assert not modules & {"matplotlib", "tensorboard", "torch.utils.tensorboard", "pandas", "scipy"}
    assert not modules & {"onmt_entmax.train", "onmt_entmax.options.train"}
    assert "onmt_entmax.report.page" not in modules


def test_torch_objects_are_frozen_at_the_end(inflected: Finished) -> None:
    """Otherwise Python would visit all objects when it ends, a quarter of a command's time."""
    assert inflected.frozen > 100_000  # torch alone has several times as many
