"""Arguments of commands: misspelt and repeated options, and rules of values."""

from argparse import ArgumentTypeError
from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.errors import UserError
from onmt_entmax.rules import whole


@pytest.mark.parametrize("method", ["parse_args", "parse_intermixed_args"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            "--model a x", "--model: no such option; did you mean '-model'?", id="two hyphens"
        ),
        pytest.param(
            "-model a x --n-best=3",
            "--n-best: no such option; did you mean '--n_best'?",
            id="hyphen for underscore",
        ),
        pytest.param("-mod a", "-mod: no such option; did you mean '-model'?", id="shortened"),
        pytest.param(
            "-model a -xyz", "-xyz: no such option; -h explains the arguments", id="unlike any"
        ),
        pytest.param(
            "-- --model",
            "the following arguments are required: -model; -h explains",
            id="an argument that looks like an option",
        ),
        pytest.param(
            "-model a --n_best x", "argument --n_best: invalid int value: 'x'; -h", id="value"
        ),
    ],
)
def test_a_misspelt_option_is_named_before_what_is_missing(
    words: str, message: str, method: str
) -> None:
    """Some commands have options with one hyphen, others with two, and both have underscores."""
    parser = argument_parser("A command.")
    parser.add_argument("word", nargs="*")
    parser.add_argument("-model", required=True)
    parser.add_argument("--n_best", type=int)
    with pytest.raises(UserError) as raised:
        getattr(parser, method)(words.split())
    assert str(raised.value).startswith(message)


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


COUNT = replace(whole(1, 5), names=("all",))


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
