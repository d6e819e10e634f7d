"""The words that a parser lacks, as `tests.papers.parsers` finds them."""

import argparse
import shlex

import pytest

from tests.papers.parsers import parser_of, unknown_words


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    """A parser with options before the subcommands `draw` and `count`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--name")
    parser.add_argument("--sides", nargs=2)
    parser.add_argument("--clock", choices=["cpu", "gpu"])
    subcommands = parser.add_subparsers()
    draw = subcommands.add_parser("draw")
    draw.add_argument("--forms", nargs="+", choices=["pdf", "png"])
    subcommands.add_parser("count").add_argument("unit", choices=["words", "lines"])
    return parser


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("--quick draw", id="a flag"),
        pytest.param("--name any draw", id="an option"),
        pytest.param("--sides any other draw", id="an option of two values"),
        pytest.param("--clock=cpu draw", id="a value behind ="),
        pytest.param("draw --forms pdf png", id="an option of many values"),
        pytest.param("count words", id="an argument"),
    ],
)
def test_words_of_a_parser_are_known(parser: argparse.ArgumentParser, line: str) -> None:
    assert unknown_words(parser, shlex.split(line)) == []


@pytest.mark.parametrize(
    ("line", "unknown"),
    [
        pytest.param("--quik", "--quik", id="an option"),
        pytest.param("--quik=1", "--quik=1", id="an option with a value"),
        pytest.param("--quick=1", "--quick=1", id="a value of a flag"),
        pytest.param("--clock tpu", "tpu", id="a choice"),
        pytest.param("--clock=tpu", "--clock=tpu", id="a choice behind ="),
        pytest.param("--quick drew", "drew", id="a subcommand after a flag"),
        pytest.param("--name any drew", "drew", id="a subcommand after an option"),
        pytest.param("--name=any drew", "drew", id="a subcommand after a value behind ="),
        pytest.param("--sides any other drew", "drew", id="a subcommand after two values"),
        pytest.param("--clock cpu drew", "drew", id="a subcommand after a choice"),
        pytest.param("draw --quick", "--quick", id="an option that stands before subcommands"),
        pytest.param("draw --forms pdf gif", "gif", id="the second of many values"),
        pytest.param("count letters", "letters", id="an argument"),
    ],
)
def test_a_word_that_a_parser_lacks_is_found(
    parser: argparse.ArgumentParser, line: str, unknown: str
) -> None:
    assert unknown_words(parser, shlex.split(line)) == [unknown]


def test_options_that_a_command_passes_on_are_known(parser: argparse.ArgumentParser) -> None:
    further = argparse.ArgumentParser()
    option = further.add_argument("--symbols", type=int)
    words = ["--symbols", "25000", "draw"]
    assert unknown_words(parser, words, {"--symbols": option}) == []


def test_a_command_without_a_parser_is_an_error() -> None:
    with pytest.raises(AssertionError, match="parses no arguments"):
        parser_of(lambda: None)
