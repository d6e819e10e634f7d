"""`Processes.say`: of several processes, only the first prints messages, each in one line."""

import pytest

from onmt_entmax.parallel.processes import Processes


@pytest.mark.parametrize(("rank", "printed"), [(0, "note\n"), (1, "")], ids=["first", "second"])
def test_only_the_first_process_prints(
    rank: int,
    printed: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", str(rank))
    Processes().say("note")
    assert capsys.readouterr().err == printed


def test_control_characters_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    """A stranger's `best.json` may name a measure that would clear the terminal."""
    Processes().say("a\x1b[2Jb\nc")
    assert capsys.readouterr().err == "a\\x1b[2Jb\\nc\n"
