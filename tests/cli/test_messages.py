"""Messages to the user: each is one line of printable characters; long ones are shortened."""

import pytest

from onmt_entmax.cli.messages import note, one_line, warn

# Such as an error that names a token of a million letters, and ends with advice.
LONG = f"{'x' * 10**6}; mend it"


def test_a_long_message_keeps_its_beginning() -> None:
    assert one_line(LONG, kept=200).startswith("x" * 200 + " ... ")


def test_a_long_message_keeps_its_end_which_says_what_to_do() -> None:
    assert one_line(LONG, kept=200).endswith("xxx; mend it")


def test_a_long_message_keeps_as_many_characters_at_both_ends() -> None:
    assert len(one_line(LONG, kept=200)) == 2 * 200 + len(" ... ")


def test_a_short_message_is_not_cut() -> None:
    assert one_line("x" * 400, kept=200) == "x" * 400


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a\nb", r"a\nb", id="line feed"),
        pytest.param("\u2028", r"\u2028", id="line separator"),
        pytest.param("\x1b]0;\x07", r"\x1b]0;\x07", id="commands to a terminal"),
        pytest.param("\u202e", r"\u202e", id="change of the direction of writing"),
        pytest.param("\udc80", r"\udc80", id="byte that is no letter"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    """Names of files, tokens and options may come from a stranger."""
    assert one_line(text) == shown


def test_letters_of_other_scripts_and_joiners_between_them_stay() -> None:
    assert one_line("ک\u200cم") == "ک\u200cم"


def test_each_warning_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    warn("first", "a\nb")
    assert capsys.readouterr().err == "warning: first\nwarning: a\\nb\n"


def test_a_long_warning_keeps_more_than_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """It may list tokens: 600 characters stay at both ends."""
    warn(LONG)
    assert capsys.readouterr().err == f"warning: {one_line(LONG, kept=600)}\n"


def test_each_note_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    note("first", "a\nb")
    assert capsys.readouterr().err == "note: first\nnote: a\\nb\n"


def test_a_long_note_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    note(LONG)
    assert capsys.readouterr().err == f"note: {LONG}\n"
