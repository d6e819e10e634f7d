"""How a command ends: its exit status, and one line that gives the reason of a failure."""

import signal
import subprocess
from collections.abc import Callable

import pytest
import torch

from onmt_entmax.cli.ending import ending
from onmt_entmax.errors import UserError


def failing(error: BaseException) -> Callable[[], int]:
    """Return a command that raises an error."""

    def work() -> int:
        raise error

    return work


# --- errors of the user and of the machine ---

each_error = pytest.mark.parametrize(
    ("error", "line"),
    [
        pytest.param(UserError("no such thing"), "no such thing", id="of the user"),
        pytest.param(
            OSError(28, "No space left on device", "out"),
            "out: No space left on device",
            id="a full disk",
        ),
        pytest.param(
            UnicodeEncodeError("ascii", "ö", 0, 1, ""),
            r"'\xf6' cannot be written in ascii; mend the input, or set PYTHONIOENCODING=utf-8",
            id="a letter that ASCII lacks",
        ),
        pytest.param(
            UnicodeEncodeError("utf-8", "\udc80", 0, 1, ""),
            r"'\udc80' cannot be written in utf-8; mend the input, or set PYTHONIOENCODING=utf-8",
            id="a byte that is no letter",
        ),
        pytest.param(
            MemoryError(), "this does not fit in memory (an allocation failed)", id="memory"
        ),
        pytest.param(
            RuntimeError("can't start new thread"),
            "no thread can be started; end other programs, or raise `ulimit -u`",
            id="threads",
        ),
    ],
)


@each_error
def test_an_error_is_printed_in_one_line(
    error: BaseException, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ending("tool.py", failing(error))
    assert capsys.readouterr().err == f"tool.py: error: {line}\n"


@each_error
def test_an_error_gives_status_2(error: BaseException, line: str) -> None:
    assert ending("tool.py", failing(error)) == 2


@pytest.mark.parametrize(
    "text", [pytest.param("x" * 10**6, id="long"), pytest.param("a\nb", id="of several lines")]
)
def test_an_error_with_any_text_is_one_short_line(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ending("tool.py", failing(UserError(text)))
    (line,) = capsys.readouterr().err.splitlines()
    assert len(line) < 500


def test_the_error_of_a_failed_allocation_has_its_size(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def work() -> int:
        return torch.empty(1 << 60, dtype=torch.uint8).size(0)

    ending("tool.py", work)
    size = "1,152,921,504.6 GB"  # 2 ** 60 bytes
    assert f"this does not fit in memory (needs {size} more)" in capsys.readouterr().err


# --- interrupts and bugs ---


def test_an_interrupt_gives_the_status_of_its_signal() -> None:
    assert ending("tool.py", failing(KeyboardInterrupt())) == 128 + signal.SIGINT


def test_an_interrupt_is_printed_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    ending("tool.py", failing(KeyboardInterrupt()))
    assert capsys.readouterr().err == "tool.py: interrupted\n"


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        ending("tool.py", lambda: 1 // 0)


# --- statuses of commands ---


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
def test_a_command_has_the_status_of_another_that_failed_in_it(code: str, status: int) -> None:
    """Audits and distillations run other commands."""

    def work() -> int:
        return subprocess.run(["sh", "-c", code], check=True).returncode

    assert ending("tool.py", work) == status
