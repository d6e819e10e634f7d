"""Commands import what they need: help no library, inflecting a word nothing of training."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT
from tests.inflection_models import write_model

CODE = """
import gc, json, sys
from onmt_entmax.cli.main import main
sys.argv[0] = "onmt-entmax"
status = main()
print(json.dumps([status, gc.get_freeze_count(), sorted(sys.modules)]), file=sys.stderr)
"""


def imported(*arguments: object) -> set[str]:
    """Return the names of the modules that a process has imported after a command."""
    command = [sys.executable, "-W", "ignore", "-c", CODE, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    status, frozen, modules = json.loads(done.stderr.splitlines()[-1])
    assert status == 0, done.stderr
    # At the end, Python would look at all of torch's objects, a quarter of the time of a command.
    assert ("torch" in modules) == (frozen > 100_000)
    return set(modules)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_imports_no_library(option: str) -> None:
    modules = imported(option)
    assert not modules & {"torch", "numpy", "yaml", "tqdm", "onmt", "matplotlib", "sacrebleu"}
    ours = {name for name in modules if name.startswith("onmt_entmax.")}
    assert {name.split(".")[1] for name in ours} <= {"cli", "errors", "memory", "rules", "version"}


def test_inflecting_a_word_imports_nothing_of_training_and_pictures(tmp_path: Path) -> None:
    """Torch and OpenNMT-py, with all that its package imports, are the rest."""
    model = write_model(tmp_path / "model", 22)
    modules = imported("inflect", "german", "ab", "V", "--model", model)
    assert "torch" in modules
    assert not modules & {"matplotlib", "tensorboard", "torch.utils.tensorboard", "pandas", "scipy"}
    assert not modules & {"onmt_entmax.train", "onmt_entmax.options.train"}
    assert "onmt_entmax.report.page" not in modules
