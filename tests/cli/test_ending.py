"""How commands end: the status, and what is said."""

import subprocess
import sys
from pathlib import Path

import pytest

from onmt_entmax.cli.ending import ending
from onmt_entmax.errors import UserError
from tests.commands import ENVIRONMENT


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (UserError("no such thing"), 2, "tool.py: error: no such thing\n"),
        (OSError(28, "No space left on device", "out"), 2, "tool.py: error: out: No space left on"),
        (OSError("gone"), 2, "tool.py: error: gone\n"),
        (UnicodeEncodeError("ascii", "ö", 0, 1, ""), 2, "which has no '\\xf6'; set PYTHONIO"),
        (KeyboardInterrupt(), 130, "tool.py: interrupted\n"),
    ],
)
def test_what_stops_a_command_is_one_line_and_a_status(raised, status, said, capsys) -> None:
    def work() -> int:
        raise raised

    assert ending("tool.py", work) == status
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_the_status_of_a_command_is_its_own_and_its_mistakes_are_shown() -> None:
    assert [ending("tool.py", lambda status=status: status) for status in (0, 1)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        ending("tool.py", lambda: 1 // 0)


def test_who_has_read_enough_ends_a_command_quietly(tmp_path: Path) -> None:
    code = """
import sys
from onmt_entmax.cli.ending import ending

def work():
    while True:
        print("line", flush=True)

sys.exit(ending("tool.py", work))
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "line\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(30) == 141  # as of SIGPIPE, and not as of success
