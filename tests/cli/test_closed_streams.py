"""Standard streams that are closed, full or left by their reader: a command needs no stderr."""

import signal
import subprocess
import sys

import pytest

from tests.commands import ENVIRONMENT

# A command whose arguments say what it does: write to a stream, read, flush the output, or fail.
COMMAND = """
import sys
from onmt_entmax.cli.ending import ending
from onmt_entmax.errors import UserError

def work():
    for word in sys.argv[1:]:
        if word == "fail":
            raise UserError("no such thing")
        elif word == "read":
            sys.stdin.buffer.read()
        elif word == "flush":
            sys.stdout.flush()
        else:
            print("text", file=getattr(sys, word))
    return 0

sys.exit(ending("tool.py", work))
"""
CLOSED = "the standard output is closed: Bad file descriptor"


def run_in_shell(words: str, redirection: str) -> subprocess.CompletedProcess[str]:
    """Run the command; capture what it prints to streams that are not redirected.

    Args:
        words: what the command does, one after another.
        redirection: what a shell does with streams: `2>&-` closes the standard error.
    """
    command = f"set -o pipefail; '{sys.executable}' -c \"$CODE\" {words} {redirection}"
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, "CODE": COMMAND},
    )


# --- standard error and input ---

without_standard_error = pytest.mark.parametrize(
    "redirection",
    [
        pytest.param("2>&-", id="closed"),
        pytest.param("2>/dev/full", id="not writable, as after its terminal was closed"),
    ],
)


@without_standard_error
def test_a_command_works_without_standard_error(redirection: str) -> None:
    done = run_in_shell("stderr stdout", redirection)
    assert (done.returncode, done.stdout) == (0, "text\n")


@without_standard_error
def test_an_error_keeps_its_status_without_standard_error(redirection: str) -> None:
    assert run_in_shell("fail", redirection).returncode == 2


def test_a_command_works_without_standard_input() -> None:
    done = run_in_shell("stdout", "<&-")
    assert (done.returncode, done.stdout) == (0, "text\n")


def test_a_closed_standard_input_is_named_when_it_is_read() -> None:
    done = run_in_shell("read", "<&-")
    assert (done.returncode, done.stderr) == (2, "tool.py: error: standard input: is closed\n")


# --- standard output ---


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("stdout flush", id="while the command works"),
        pytest.param("stdout", id="when it ends"),
    ],
)
@pytest.mark.parametrize(
    ("redirection", "message"),
    [
        pytest.param(">&-", CLOSED, id="closed"),
        pytest.param(">/dev/full", "No space left on device", id="full"),
    ],
)
def test_output_that_cannot_be_written_is_an_error_of_one_line(
    redirection: str, message: str, words: str
) -> None:
    done = run_in_shell(words, redirection)
    assert (done.returncode, done.stderr) == (2, f"tool.py: error: {message}\n")


def test_a_closed_standard_output_is_an_error_only_if_something_is_printed() -> None:
    done = run_in_shell("stderr", ">&-")
    assert (done.returncode, done.stderr) == (0, "text\n")


def test_a_closed_standard_output_is_an_error_without_standard_error_too() -> None:
    assert run_in_shell("stdout", ">&- 2>&-").returncode == 2


class TestAReaderThatHasGone:
    """`head` is such a reader: it ends when it has its lines."""

    @pytest.fixture(scope="class")
    def done(self) -> subprocess.CompletedProcess[str]:
        return run_in_shell("stdout flush " * 1000, "| true")

    def test_gives_the_status_of_its_signal(self, done: subprocess.CompletedProcess[str]) -> None:
        assert done.returncode == 128 + signal.SIGPIPE

    def test_is_not_an_error_that_is_printed(self, done: subprocess.CompletedProcess[str]) -> None:
        assert done.stderr == ""
