"""How commands end: the status, and what is said."""

import subprocess
import sys
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from onmt_entmax.cli.ending import argument_parser, ending, following
from onmt_entmax.errors import UserError
from onmt_entmax.rules import positive
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


def test_a_message_cannot_steer_the_terminal(capsys) -> None:
    """Names of files, tokens and options may come from a stranger."""

    def work() -> int:
        raise UserError("a\x1b]0;title\x07\nb\r\u2028\u202ec\x9bd\udc80 è ک\u200cم\u00a0.")

    assert ending("tool.py", work) == 2
    shown = "a\\x1b]0;title\\x07\\nb\\r\\u2028\\u202ec\\x9bd\\udc80 è ک\u200cم\u00a0."
    assert capsys.readouterr().err == f"tool.py: error: {shown}\n"


@pytest.mark.parametrize("text", ["nan", "1e400", "-1", "0", "x", "9" * 5000, "1.5\x1b[2J"])
def test_a_number_outside_its_range_is_refused(text: str) -> None:
    read = following(positive(100))
    assert read("100") == 100
    with pytest.raises(ArgumentTypeError, match="must be above 0 and at most 100, not ") as raised:
        read(text)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 200


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


def test_a_message_that_nobody_can_read_changes_nothing() -> None:
    """As after a terminal was closed: the work goes on, and its status is as ever."""
    code = """
import os, sys
from onmt_entmax.cli.ending import ending
from onmt_entmax.errors import UserError

def work():
    for _ in range(3):
        print("message", file=sys.stderr)
    os.write(1, b"done")
    raise UserError("no such thing")

status = ending("tool.py", work)
os.write(1, b" " + str(status).encode())
sys.exit(status)
"""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=-1, stderr=full, env=ENVIRONMENT, check=False
        )
    assert (done.stdout, done.returncode) == (b"done 2", 2)


@pytest.mark.parametrize("intermixed", [False, True])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "a", "x"], "--model: no such option; did you mean '-model'?"),
        (["-model", "a", "x", "--n-best=3"], "--n-best: no such option; did you mean '--n_best'?"),
        (["-model", "a", "-xyz"], "-xyz: no such option; -h explains the arguments"),
        (["--", "--model"], "the following arguments are required: -model; -h explains"),
        (["--n", "3", "a b"], "the following arguments are required: -model; -h explains"),
        (["-model", "a", "--n_best", "x"], "argument --n_best: invalid int value: 'x'; -h"),
    ],
)
def test_a_misspelt_option_is_named_before_what_is_missing(words, said, intermixed) -> None:
    """Some commands have options with one hyphen, others with two, and both have underscores."""
    parser = argument_parser("A command.")
    parser.add_argument("word", nargs="*")
    parser.add_argument("-model", required=True)
    parser.add_argument("--n_best", type=int)
    with pytest.raises(UserError) as raised:
        (parser.parse_intermixed_args if intermixed else parser.parse_args)(words)
    assert str(raised.value).startswith(said)


def test_a_misspelt_option_of_a_subcommand_is_named() -> None:
    parser = argument_parser("A command.")
    run = parser.add_subparsers().add_parser("run")
    run.add_argument("file")
    run.add_argument("--seeds")
    for words in (["run", "--seed_s", "3", "a"], ["run", "--seed_s=3"]):
        with pytest.raises(UserError, match="--seed_s: no such option; did you mean '--seeds'"):
            parser.parse_args(words)
