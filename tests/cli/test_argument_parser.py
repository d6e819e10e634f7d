"""Arguments of commands: misspelt, missing and repeated options, and rules of values."""

from argparse import ArgumentTypeError
from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.errors import UserError
from onmt_entmax.rules import whole

both_methods = pytest.mark.parametrize("method", ["parse_args", "parse_intermixed_args"])
"""The two ways in which commands read their arguments."""


def parsing_error(method: str, words: str) -> str:
    """Return the error of a command that requires `-model`, and may have `--n_best` and words.

    Some commands have options with one hyphen, others with two, and both have underscores.
    """
    parser = argument_parser("A command.")
    parser.add_argument("word", nargs="*")
    parser.add_argument("-model", required=True)
    parser.add_argument("--n_best", type=int)
    with pytest.raises(UserError) as raised:
        getattr(parser, method)(words.split())
    return str(raised.value)


@both_methods
@pytest.mark.parametrize(
    ("words", "option", "meant"),
    [
        pytest.param("--model a x", "--model", "-model", id="two hyphens"),
        pytest.param("-model a x --n-best=3", "--n-best", "--n_best", id="hyphen for underscore"),
        pytest.param("-mod a", "-mod", "-model", id="shortened"),
    ],
)
def test_the_error_of_a_misspelt_option_names_the_one_that_is_meant(
    words: str, option: str, meant: str, method: str
) -> None:
    """It does so even if the required option is missing, which is a second mistake."""
    error = parsing_error(method, words)
    assert error.startswith(f"{option}: no such option; did you mean '{meant}'?")


@both_methods
@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            "-model a -xyz",
            "-xyz: no such option; -h explains the arguments",
            id="an option unlike any other",
        ),
        pytest.param(
            "-- --model",
            "the following arguments are required: -model; -h explains",
            id="a required option is missing",
        ),
        pytest.param(
            "-model a --n_best x",
            "argument --n_best: invalid int value: 'x'; -h",
            id="a value that is no number",
        ),
    ],
)
def test_other_errors_advise_the_help(words: str, message: str, method: str) -> None:
    """Behind `--`, `--model` is a word, not an option."""
    assert parsing_error(method, words).startswith(message)


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        pytest.param(
            "--size 1 --size=2", "warning: --size is given twice; the last counts\n", id="twice"
        ),
        pytest.param("--size 1 -- --size", "", id="an argument of the same text"),
        pytest.param("--each 1 --each 2", "", id="a list that collects"),
        pytest.param("--size 1", "", id="once"),
    ],
)
def test_an_option_that_replaces_an_earlier_one_gives_a_warning(
    words: str, warning: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argument_parser(None)
    parser.add_argument("--size")
    parser.add_argument("--each", action="append")
    parser.add_argument("text", nargs="?")
    parser.parse_args(words.split())
    assert capsys.readouterr().err == warning


COUNT = replace(whole(1, 5), names=("all",))  # the rule of an option: 1 to 5, or `all`


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("5", 5), ("all", "all")])
def test_an_argument_that_follows_its_rule_is_read(text: str, value: object) -> None:
    assert COUNT(text) == value


@pytest.mark.parametrize("text", ["0", "6", "2.5", "x"])
def test_an_argument_that_breaks_its_rule_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="from 1 to 5, not"):
        COUNT(text)


def test_an_empty_path_is_refused_by_a_subcommand_too() -> None:
    parser = argument_parser(None)
    command = parser.add_subparsers().add_parser("draw")
    command.add_argument("--output", type=Path)
    with pytest.raises(UserError, match="--output: is empty, and should name a file or folder"):
        parser.parse_args(["draw", "--output", ""])
