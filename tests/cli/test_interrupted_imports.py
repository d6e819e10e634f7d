"""Ctrl-C while a command still imports its libraries, which takes seconds."""

import signal
import sys
from typing import NamedTuple

import pytest

from onmt_entmax.cli import command_modules
from onmt_entmax.cli.main import run
from onmt_entmax.errors import UserError
from tests.cli.processes import PATIENCE, running


class Interrupted(NamedTuple):
    """A command that was interrupted, and what it printed to the standard error after that."""

    status: int
    errors: str


@pytest.fixture(scope="module")
def interrupted() -> Interrupted:
    # The interpreter names each module that it has imported.
    command = [sys.executable, "-X", "importtime", "-m", "onmt_entmax", "translate", "-h"]
    with running(*command) as process:
        assert process.stderr is not None
        assert any("numpy" in line for line in process.stderr), "numpy is not imported"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        return Interrupted(process.returncode, errors)


def test_an_interrupted_import_ends_the_command(interrupted: Interrupted) -> None:
    """The signal may come before the command can handle it, and then ends the process itself."""
    assert interrupted.status in (128 + signal.SIGINT, -signal.SIGINT)


def test_an_interrupted_import_prints_no_traceback(interrupted: Interrupted) -> None:
    assert "Traceback" not in interrupted.errors


def test_ctrl_c_raises_an_interrupt_again_after_an_import_that_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers: list[object] = []  # of Ctrl-C, during each import

    def import_module(name: str) -> None:
        handlers.append(signal.getsignal(signal.SIGINT))
        raise UserError(f"{name}: a library is missing")

    monkeypatch.setattr(command_modules, "import_module", import_module)
    run("train", [], "onmt-entmax train")
    assert "onmt_entmax.cli.train: a library is missing" in capsys.readouterr().err
    assert handlers == [signal.SIG_DFL]  # the default action, which ends the process
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
