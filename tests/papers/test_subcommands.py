"""Subcommands of scripts: where their descriptions are printed."""

import argparse

import pytest

from tools.papers.subcommands import add_subcommand

DESCRIPTION = """Print accuracies in %.

    one table    for each language
"""


@pytest.fixture
def script() -> argparse.ArgumentParser:
    """The parser of a script with the subcommand `words`."""
    parser = argparse.ArgumentParser()
    add_subcommand(parser.add_subparsers(), "words", DESCRIPTION)
    return parser


def test_the_help_of_a_script_has_the_first_line_of_a_description(
    script: argparse.ArgumentParser,
) -> None:
    lines = [line.split() for line in script.format_help().splitlines()]
    assert ["words", "Print", "accuracies", "in", "%."] in lines
    assert "one table" not in script.format_help()


def test_the_help_of_a_subcommand_has_the_description_as_it_is_written(
    script: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        script.parse_args(["words", "-h"])
    assert DESCRIPTION in capsys.readouterr().out
