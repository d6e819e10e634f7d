"""The time at which a command began: before its imports. Time limits count from then."""

import time

from onmt_entmax.cli.ending import command_began, ending


def test_a_command_has_the_time_at_which_it_began() -> None:
    """It is a time of `time.monotonic`."""
    times: list[float | None] = []

    def work() -> int:
        time.sleep(0.01)  # stands for the imports
        times.extend((command_began(), time.monotonic()))
        return 0

    before = time.monotonic()
    ending("tool.py", work)
    began, later = times
    assert began is not None
    assert later is not None
    assert before <= began <= later - 0.01


def test_before_a_command_there_is_no_such_time() -> None:
    assert command_began() is None


def test_after_a_command_there_is_no_such_time() -> None:
    ending("tool.py", lambda: 0)
    assert command_began() is None
