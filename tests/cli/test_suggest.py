"""`onmt-entmax suggest`: typed sources and prefixes, and calls that it refuses."""

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

from onmt_entmax.cli import suggest
from tests.in_process import exit_status, refusal, success
from tests.string_models import write_phones

# --- typed sources and prefixes ---

PREFIXES = "p\n\nö\na\n"  # the second is empty, the third impossible


class Printed(NamedTuple):
    """The standard output and the standard error of the command."""

    output: str
    errors: str


def typed(text: str, *arguments: object) -> Printed:
    """Run the command with a text as its standard input."""
    with (
        mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()))),
        redirect_stdout(io.StringIO()) as output,
        redirect_stderr(io.StringIO()) as errors,
    ):
        assert exit_status(suggest.main, [str(argument) for argument in arguments]) == 0
    return Printed(output.getvalue(), errors.getvalue())


def test_prefixes_after_an_impossible_one_are_answered(phones_model: Path) -> None:
    printed = typed(PREFIXES, phones_model, "--source", "a b")
    assert printed.output.count("forced") == 3


def test_an_impossible_prefix_is_an_error_of_one_line(phones_model: Path) -> None:
    printed = typed(PREFIXES, phones_model, "--source", "a b")
    assert printed.errors == "suggest.py: 'ö' is not in the target vocabulary\n"


def test_the_first_typed_line_that_is_not_blank_is_the_source(phones_model: Path) -> None:
    expected = typed(PREFIXES, phones_model, "--source", "a b")
    assert typed(f"\na b\n{PREFIXES}", phones_model) == expected


def test_without_typed_lines_nothing_is_printed(phones_model: Path) -> None:
    assert typed("", phones_model) == Printed("", "")


# --- prefixes of a right-to-left model ---


def test_a_right_to_left_model_warns_of_the_order_of_prefixes(tmp_path: Path) -> None:
    model = write_phones(tmp_path / "model", seed=12, target_order="right_to_left")
    printed = success(suggest.main, [model, "--source", "a", "--prefix", "p"])
    assert "from right to left: a prefix begins with the last token" in printed


# --- refusals ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--source", " ", "--prefix", "p"], "the source is blank", id="blank source"),
        pytest.param(
            ["--source", "a", "--prefix", "p ö"], "'ö' is not in the target", id="unknown token"
        ),
        pytest.param(["--prefix", "p"], "--prefix needs --source", id="no source"),
    ],
)
def test_sources_and_prefixes_that_cannot_be_answered_are_refused(
    phones_model: Path, arguments: list[str], message: str
) -> None:
    assert message in refusal(suggest.main, [phones_model, *arguments])


def test_a_missing_model_is_refused(tmp_path: Path) -> None:
    arguments = [tmp_path / "nowhere", "--source", "a", "--prefix", "p"]
    assert "nowhere: no such model folder" in refusal(suggest.main, arguments)
