"""How commands end: the status, and what is said."""

import signal
import subprocess
import sys
import time
from argparse import ArgumentTypeError
from dataclasses import replace

import pytest
import torch

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.ending import command_began, ending
from onmt_entmax.cli.messages import warn
from onmt_entmax.errors import UserError
from onmt_entmax.rules import whole
from tests.commands import ENVIRONMENT


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (UserError("no such thing"), 2, "tool.py: error: no such thing\n"),
        (UserError(f"{'x' * 10**6}; mend it"), 2, "xx; mend it\n"),
        (OSError(28, "No space left on device", "out"), 2, "tool.py: error: out: No space left on"),
        (UnicodeEncodeError("ascii", "ö", 0, 1, ""), 2, "'\\xf6' cannot be written in ascii"),
        (UnicodeEncodeError("utf-8", "\udc80", 0, 1, ""), 2, "'\\udc80' cannot be written in utf"),
        (MemoryError(), 2, "tool.py: error: this does not fit in memory (an allocation failed)\n"),
        (RuntimeError("can't start new thread"), 2, "error: no thread can be started; end other"),
        (KeyboardInterrupt(), 130, "tool.py: interrupted\n"),
        # Names of files, tokens and options may come from a stranger.
        (UserError("a\x1b]0;\x07\nb\u2028\u202e\udc80ک\u200cم"), 2,
         "a\\x1b]0;\\x07\\nb\\u2028\\u202e\\udc80ک\u200cم\n"),
    ],
)  # fmt: skip
def test_what_stops_a_command_is_one_short_line_and_a_status(
    raised, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> int:
        raise raised

    assert ending("tool.py", work) == status
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert len(error) < 500


def test_a_command_knows_when_it_began() -> None:
    """Before its work, such as imports, so that a limit of time holds for the whole."""
    began: list[float | None] = []

    def work() -> int:
        began.append(command_began())
        return 0

    before = time.monotonic()
    assert ending("tool.py", work) == 0
    assert before <= began[0] <= time.monotonic()
    assert command_began() is None


def test_a_status_is_the_command_s_own_and_bugs_keep_their_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert [ending("tool.py", lambda status=status: status) for status in (0, 1)] == [0, 1]
    for code, status in (("exit 3", 3), ("kill $$", 143)):  # of another command
        other = ["sh", "-c", code]
        assert ending("p", lambda other=other: subprocess.run(other, check=True)) == status
    with pytest.raises(ZeroDivisionError):
        ending("tool.py", lambda: 1 // 0)
    assert ending("p", lambda: torch.empty(1 << 60, dtype=torch.uint8).size(0)) == 2
    assert "p: error: this does not fit in memory (needs 1,1" in capsys.readouterr().err


CODE = """
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


@pytest.mark.parametrize(
    ("closed", "words", "status", "said"),
    [
        ("2>&-", "stderr stdout", 0, "text\n"),
        ("2>/dev/full", "stderr stdout fail", 2, "text\n"),  # as after its terminal was closed
        (">&-", "stderr stdout", 2, "text\ntool.py: error: the standard output is closed: Bad f"),
        (">&- 2>&-", "stdout", 2, ""),
        (">/dev/full", "stdout", 2, "tool.py: error: No space left on device\n"),
        ("<&-", "stdout", 0, "text\n"),
        ("| true", "stdout " * 1000, 141, ""),
    ],
)
def test_closed_streams(closed: str, words: str, status: int, said: str) -> None:
    """Work needs no standard error; a standard output that is needed is missed in one line."""
    command = f"set -o pipefail; '{sys.executable}' -c \"$CODE\" {words} {closed}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env={**ENVIRONMENT, "CODE": CODE}
    )
    assert done.returncode == status, done
    assert (done.stdout + done.stderr).startswith(said)
    assert (done.stdout + done.stderr).count("\n") == said.rstrip("\n").count("\n") + bool(said)


def test_an_interrupt_while_libraries_load_ends_a_command() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "onmt_entmax", "translate", "-h"]
    with subprocess.Popen(command, stdout=-1, stderr=-1, env=ENVIRONMENT) as process:
        for line in process.stderr:
            if b"numpy" in line:
                process.send_signal(signal.SIGINT)
                break
        rest = process.stderr.read()
        assert process.wait(30) in (130, -signal.SIGINT)
    assert b"Traceback" not in rest


@pytest.mark.parametrize("intermixed", [False, True])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "a", "x"], "--model: no such option; did you mean '-model'?"),
        (["-model", "a", "x", "--n-best=3"], "--n-best: no such option; did you mean '--n_best'?"),
        (["-mod", "a"], "-mod: no such option; did you mean '-model'?"),
        (["-model", "a", "-xyz"], "-xyz: no such option; -h explains the arguments"),
        (["--", "--model"], "the following arguments are required: -model; -h explains"),
        (["-model", "a", "--n_best", "x"], "argument --n_best: invalid int value: 'x'; -h"),
    ],
)
def test_a_misspelt_option_is_named_before_what_is_missing(
    words: list[str], said: str, intermixed: bool
) -> None:
    """Some commands have options with one hyphen, others with two, and both have underscores."""
    parser = argument_parser("A command.")
    parser.add_argument("word", nargs="*")
    parser.add_argument("-model", required=True)
    parser.add_argument("--n_best", type=int)
    with pytest.raises(UserError) as raised:
        (parser.parse_intermixed_args if intermixed else parser.parse_args)(words)
    assert str(raised.value).startswith(said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--size", "1", "--size=2"], "warning: --size is given twice; the last counts\n"),
        (["--size", "1", "--", "--size"], ""),
        (["--each", "1", "--each", "2"], ""),
        (["--size", "1"], ""),
    ],
    ids=["twice", "an argument of the same text", "a list that collects", "once"],
)
def test_an_option_that_replaces_an_earlier_one_is_said(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argument_parser(None)
    parser.add_argument("--size")
    parser.add_argument("--each", action="append")
    parser.add_argument("text", nargs="?")
    parser.parse_args(words)
    assert capsys.readouterr().err == said


def test_an_argument_follows_its_rule() -> None:
    count = replace(whole(1, 5), names=("all",))
    assert [*map(count, ("1", "5", "all"))] == [1, 5, "all"]
    for text in ("0", "6", "2.5", "x"):
        with pytest.raises(ArgumentTypeError, match="from 1 to 5, not"):
            count(text)


def test_a_warning_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    """As one that names a token of a million letters."""
    warn(f"{'x' * 10**6}; mend it", "a\nb")
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("warning: xxx")
    assert first.endswith("xxx; mend it")
    assert len(first) < 1500
    assert second == "warning: a\\nb"
