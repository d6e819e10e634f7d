"""What works without OpenNMT-py, and errors that say how to install it.

OpenNMT-py requires pyonmttok, which Python 3.13 and later do not have, so pip installs neither.
"""

import subprocess
import sys
import warnings

import pytest

from onmt_entmax.libraries import (
    BrokenLibraryError,
    MissingLibraryError,
    importing_opennmt,
    without_warnings,
)
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


# --- libraries that OpenNMT-py imports ---


@pytest.mark.parametrize(
    ("module", "requirement"),
    [
        pytest.param("torchtext", "torchtext==0.5.0", id="only one version works"),
        pytest.param("yaml", "PyYAML", id="its distribution has another name"),
    ],
)
def test_a_missing_library_of_opennmt_is_named_with_what_pip_installs(
    module: str, requirement: str
) -> None:
    with pytest.raises(MissingLibraryError) as caught, importing_opennmt():
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)
    assert str(caught.value) == f"OpenNMT-py 2.3.0 needs {module}: pip install {requirement}"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(
            ImportError("cannot import name 'Field'", name="torchtext.data"),
            "cannot import name 'Field'; pip install torchtext==0.5.0",
            id="another version lacks a name",
        ),
        pytest.param(
            ModuleNotFoundError("No module named 'torchtext.data'", name="torchtext.data"),
            "No module named 'torchtext.data'; pip install torchtext==0.5.0",
            id="another version lacks a module",
        ),
        pytest.param(
            ModuleNotFoundError("No module named 'onmt.modules'", name="onmt.modules"),
            "No module named 'onmt.modules'; pip install --no-deps OpenNMT-py==2.3.0",
            id="another version of OpenNMT-py",
        ),
        pytest.param(
            ModuleNotFoundError("No module named 'six'", name="six"),
            "No module named 'six'; pip install what provides six",
            id="a module of an unknown distribution",
        ),
        pytest.param(
            ImportError("libx.so: cannot open\nmore"), "libx.so: cannot open", id="a shared library"
        ),
    ],
)
def test_a_library_that_cannot_be_imported_is_called_broken_not_missing(
    error: ImportError, reason: str
) -> None:
    with pytest.raises(BrokenLibraryError) as caught, importing_opennmt():
        raise error
    assert str(caught.value) == f"OpenNMT-py 2.3.0 cannot be imported: {reason}"
    assert caught.value.__cause__ is error


def test_warnings_of_an_import_are_hidden(recwarn: pytest.WarningsRecorder) -> None:
    with without_warnings():
        warnings.warn("deprecated", DeprecationWarning, stacklevel=1)
    assert not recwarn
