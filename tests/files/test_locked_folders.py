"""`locked`: one process at a time works in a folder."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from onmt_entmax.files import FileError, locked, write_files
from tests.commands import ENVIRONMENT, started

# A process that locks the folder of its argument, and waits.
_WORKING = """
import sys, time
from pathlib import Path
from onmt_entmax.files import locked
with locked(Path(sys.argv[1])):
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_folder_is_locked_until_the_process_that_works_there_ends(tmp_path: Path) -> None:
    """`started` kills this process at the end of its block."""
    run = tmp_path / "run"
    command = [sys.executable, "-c", _WORKING, run]
    with started(command, stdout=subprocess.PIPE, env=ENVIRONMENT, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(FileError, match="run: another process works here"), locked(run):
            pytest.fail("both work there")
    with locked(run):
        (run / "file").touch()


def test_the_check_of_a_lock_passes_while_the_folder_is_there(tmp_path: Path) -> None:
    with locked(tmp_path / "run") as check:
        check()


def test_the_check_of_a_lock_notices_that_the_folder_was_deleted(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with locked(run) as check:
        shutil.rmtree(run)
        with pytest.raises(FileError, match="run: was deleted or replaced"):
            check()


def test_the_check_of_a_lock_notices_that_the_folder_was_replaced(tmp_path: Path) -> None:
    """The new folder may be locked by another process."""
    run = tmp_path / "run"
    with locked(run) as check:
        shutil.rmtree(run)
        with locked(run), pytest.raises(FileError, match="run: was deleted or replaced"):
            check()


def test_a_folder_that_replaced_the_locked_one_is_not_removed_after_an_error(
    tmp_path: Path,
) -> None:
    """It keeps its own lock file."""

    def fail() -> None:
        with locked(tmp_path / "run"):
            shutil.rmtree(tmp_path / "run")
            write_files({tmp_path / "run" / ".lock": ""})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (tmp_path / "run" / ".lock").exists()


def fail_in(folder: Path) -> None:
    """Raise an error in the block that locks a folder, and catch it after the block."""
    with pytest.raises(ZeroDivisionError), locked(folder):
        raise ZeroDivisionError


def test_a_new_folder_that_is_empty_is_removed_after_an_error(tmp_path: Path) -> None:
    fail_in(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_folder_with_a_file_stays_after_an_error(tmp_path: Path) -> None:
    write_files({tmp_path / "run" / "file": ""})
    fail_in(tmp_path / "run")
    assert (tmp_path / "run" / "file").exists()


def test_a_link_to_an_empty_folder_stays_after_an_error(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "link").symlink_to("scratch")
    fail_in(tmp_path / "link")
    assert (tmp_path / "link").is_dir()
