"""A check that an error is one short line, which a terminal shows whole."""

from onmt_entmax.errors import UserError

LONGEST_ERROR = 500  # characters: a few lines of a terminal, and a path


def assert_short_line(error: UserError, *parts: str) -> None:
    """Fail unless an error is one short line that has all the parts."""
    message = str(error)
    assert "\n" not in message
    assert len(message) < LONGEST_ERROR
    for part in parts:
        assert part in message
