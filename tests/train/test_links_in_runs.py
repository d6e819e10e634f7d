"""Links, pipes and folders among the files of a run that is continued, maybe a stranger's."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import checkpoint_steps, load
from onmt_entmax.files import FileError
from tests.train.runs import train_again

MORE = ("-train_steps", 8)

each_written_file = pytest.mark.parametrize("name", ["best.json", "metrics.jsonl"])


@each_written_file
def test_a_file_that_a_link_leads_to_is_not_overwritten(
    arguments: list[str], run: Path, tmp_path: Path, name: str
) -> None:
    private = tmp_path / "private"
    private.write_text("before")
    (run / name).unlink()
    (run / name).symlink_to(private)
    with pytest.raises(FileError, match=f"{name}: is a link out of the folder, to .*private"):
        train_again(arguments, "-train_from", run, *MORE)
    assert private.read_text() == "before"
    assert checkpoint_steps(run) == [2, 4, 6]


@each_written_file
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_no_file_is_refused(
    arguments: list[str], run: Path, name: str, make: Callable[[Path], None]
) -> None:
    """Writing to a pipe would wait for a reader, for ever."""
    (run / name).unlink()
    make(run / name)
    with pytest.raises(FileError, match=f"{name}: is a folder, a pipe or a device, not a file"):
        train_again(arguments, "-train_from", run, *MORE)
    assert checkpoint_steps(run) == [2, 4, 6]


def test_a_link_is_replaced_by_the_checkpoint_of_its_name(
    arguments: list[str], run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The link leads to no model, so the run continues from step 6."""
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "letter").write_text("before")
    (run / "step_8").symlink_to(documents)
    assert train_again(arguments, "-train_from", run, *MORE) == 0
    assert f"continuing from {run}/step_6\n" in capsys.readouterr().err
    assert load(run / "step_8").folder == run / "step_8"
    assert not (run / "step_8").is_symlink()
    assert (documents / "letter").read_text() == "before"
