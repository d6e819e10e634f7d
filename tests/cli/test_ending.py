"""How commands end: the status, and what is said in one line."""

import signal
import subprocess
import sys
import time

import pytest
import torch

from onmt_entmax.cli.ending import command_began, ending
from onmt_entmax.cli.messages import warn
from onmt_entmax.errors import UserError
from tests.cli.processes import PATIENCE, running
from tests.commands import ENVIRONMENT

# --- errors ---

LONG = "x" * 10**6
# Names of files, tokens and options may come from a stranger: they write no control characters.
# Letters of other scripts stay as they are, with the joiners between them.
HOSTILE = "a\x1b]0;\x07\nb\u2028\u202e\udc80ک\u200cم"


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        pytest.param(
            UserError("no such thing"), 2, "tool.py: error: no such thing\n", id="the user's error"
        ),
        pytest.param(UserError(f"{LONG}; mend it"), 2, "xx; mend it\n", id="a long error"),
        pytest.param(
            UserError(HOSTILE),
            2,
            "a\\x1b]0;\\x07\\nb\\u2028\\u202e\\udc80ک\u200cم\n",
            id="control characters",
        ),
        pytest.param(
            OSError(28, "No space left on device", "out"),
            2,
            "tool.py: error: out: No space left on",
            id="a full disk",
        ),
        pytest.param(
            UnicodeEncodeError("ascii", "ö", 0, 1, ""),
            2,
            "'\\xf6' cannot be written in ascii",
            id="a letter that ASCII lacks",
        ),
        pytest.param(
            UnicodeEncodeError("utf-8", "\udc80", 0, 1, ""),
            2,
            "'\\udc80' cannot be written in utf",
            id="a byte that is no letter",
        ),
        pytest.param(
            MemoryError(),
            2,
            "tool.py: error: this does not fit in memory (an allocation failed)\n",
            id="memory",
        ),
        pytest.param(
            RuntimeError("can't start new thread"),
            2,
            "error: no thread can be started; end other",
            id="threads",
        ),
        pytest.param(KeyboardInterrupt(), 130, "tool.py: interrupted\n", id="Ctrl-C"),
    ],
)
def test_what_stops_a_command_is_one_short_line_and_a_status(
    error: BaseException, status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> int:
        raise error

    assert ending("tool.py", work) == status
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
    assert len(printed) < 500


def test_an_allocation_of_torch_that_fails_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> int:
        return torch.empty(1 << 60, dtype=torch.uint8).size(0)

    assert ending("p", work) == 2
    message = "p: error: this does not fit in memory (needs 1,1"  # 1,152,921,504,606,846,976 bytes
    assert message in capsys.readouterr().err


def test_bugs_keep_their_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        ending("tool.py", lambda: 1 // 0)


def test_a_warning_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    """Such as one with a token of a million letters; its end, which says what to do, stays."""
    warn(f"{LONG}; mend it")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: xxx")
    assert line.endswith("xxx; mend it")
    assert len(line) < 1500


def test_each_warning_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    warn("first", "a\nb")
    assert capsys.readouterr().err.splitlines() == ["warning: first", "warning: a\\nb"]


# --- statuses ---


@pytest.mark.parametrize("status", [0, 1])
def test_the_status_of_a_command_is_kept(status: int) -> None:
    assert ending("tool.py", lambda: status) == status


@pytest.mark.parametrize(
    ("code", "status"),
    [
        pytest.param("exit 3", 3, id="failed"),
        pytest.param("kill $$", 128 + signal.SIGTERM, id="killed"),
    ],
)
def test_a_status_may_be_that_of_another_command(code: str, status: int) -> None:
    def work() -> int:
        return subprocess.run(["sh", "-c", code], check=True).returncode

    assert ending("tool.py", work) == status


def test_a_command_knows_when_it_began() -> None:
    """Before its work, such as imports, so that a limit of time holds for the whole."""
    began: list[float | None] = []

    def work() -> int:
        began.append(command_began())
        return 0

    before = time.monotonic()
    assert ending("tool.py", work) == 0
    (beginning,) = began
    assert beginning is not None
    assert before <= beginning <= time.monotonic()


def test_without_a_command_none_has_begun() -> None:
    ending("tool.py", lambda: 0)
    assert command_began() is None


# --- closed streams, and interrupts ---

# A command whose arguments say what it does: write to a stream, or fail.
COMMAND = """
import sys
from onmt_entmax.cli.ending import ending
from onmt_entmax.errors import UserError

def work():
    for word in sys.argv[1:]:
        if word == "fail":
            raise UserError("no such thing")
        print("text", file=getattr(sys, word), flush=True)
    return 0

sys.exit(ending("tool.py", work))
"""


def run_in_shell(words: str, redirection: str) -> subprocess.CompletedProcess[str]:
    """Run the command with redirected streams; what it prints otherwise is captured."""
    command = f"set -o pipefail; '{sys.executable}' -c \"$CODE\" {words} {redirection}"
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, "CODE": COMMAND},
    )


@pytest.mark.parametrize(
    ("redirection", "words", "status", "printed"),
    [
        pytest.param("2>&-", "stderr stdout", 0, "text\n", id="no standard error"),
        pytest.param(
            "2>/dev/full", "stderr stdout fail", 2, "text\n", id="as after its terminal was closed"
        ),
        pytest.param(
            ">&-",
            "stderr stdout",
            2,
            "text\ntool.py: error: the standard output is closed: Bad f",
            id="no standard output",
        ),
        pytest.param(">&- 2>&-", "stdout", 2, "", id="neither"),
        pytest.param(
            ">/dev/full",
            "stdout",
            2,
            "tool.py: error: No space left on device\n",
            id="full standard output",
        ),
        pytest.param("<&-", "stdout", 0, "text\n", id="no standard input"),
        pytest.param("| true", "stdout " * 1000, 141, "", id="a reader that has gone"),
    ],
)
def test_closed_streams(redirection: str, words: str, status: int, printed: str) -> None:
    """Work needs no standard error; a standard output that is needed is missed in one line."""
    done = run_in_shell(words, redirection)
    assert done.returncode == status, done
    lines = (done.stdout + done.stderr).splitlines(keepends=True)
    assert "".join(lines).startswith(printed)
    assert len(lines) == len(printed.splitlines())


def test_an_interrupt_while_libraries_load_ends_a_command() -> None:
    """Without a traceback. The interpreter names each module that it has imported."""
    command = [sys.executable, "-X", "importtime", "-m", "onmt_entmax", "translate", "-h"]
    with running(*command) as process:
        assert process.stderr is not None
        assert any("numpy" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=PATIENCE)
        assert process.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in rest
