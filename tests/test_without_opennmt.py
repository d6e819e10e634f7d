"""What works without OpenNMT-py, and errors that say how to install it.

OpenNMT-py requires pyonmttok, which Python 3.13 and later do not have, so pip installs neither.
"""

import subprocess
import sys

import pytest

from onmt_entmax.libraries import MissingLibraryError, importing_opennmt
from tests.commands import execute
from tests.hidden_libraries import run_without

NOT_INSTALLED = "OpenNMT-py 2.3.0 is not installed: pip install --no-deps OpenNMT-py==2.3.0"

# Maps scores by sparsemax, and then imports a class that needs OpenNMT-py.
_SCRIPT = """
from tests.hidden_libraries import hide
hide(["onmt", "torchtext", "sacrebleu", "flask"])
import torch
from onmt_entmax import entmax, entmax_attention, entmax_loss
print(entmax(torch.tensor([1.0, 0.5, -3.0]), alpha=2).tolist())
try:
    from onmt_entmax import Translator
except ImportError as error:
    print(error)
"""


class TestThePackage:
    """In a process where PyTorch is installed, and libraries for models are not."""

    @pytest.fixture(scope="class")
    def done(self) -> subprocess.CompletedProcess[str]:
        done = execute([sys.executable, "-c", _SCRIPT])
        assert done.returncode == 0, done.stderr
        return done

    def test_maps_scores(self, done: subprocess.CompletedProcess[str]) -> None:
        assert done.stdout.splitlines()[0] == "[0.75, 0.25, 0.0]"

    def test_says_what_a_translator_needs(self, done: subprocess.CompletedProcess[str]) -> None:
        assert done.stdout.splitlines()[1:] == [NOT_INSTALLED]


@pytest.mark.parametrize("command", ["train -config x", "inflect spanish a V"])
def test_a_command_says_in_one_line_what_it_needs(command: str) -> None:
    done = run_without("onmt,pyonmttok", *command.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"onmt-entmax {command.split()[0]}: error: {NOT_INSTALLED}\n"


def test_a_library_that_opennmt_imports_is_named_if_it_is_missing() -> None:
    message = r"needs torchtext: pip install torchtext$"
    with pytest.raises(MissingLibraryError, match=message), importing_opennmt():
        raise ModuleNotFoundError("No module named 'torchtext.data'", name="torchtext.data")
