"""The output file of a command is the old one or the whole new one, whatever stops the command."""

import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.commands import CONSOLE, ENVIRONMENT, fail, run, started
from tests.reversing_model import FOLDER as MODEL

FEW = 240  # lines of a source: with 5 bytes each, their translation has 1,200
MANY = 400  # lines whose translation is written for long enough to be killed meanwhile
OLD = "OLD\n"  # content of the output of an earlier translation

# The console command on a disk that is full: no file can have more than 1,024 bytes.
ON_A_FULL_DISK = """
import resource, sys
from onmt_entmax.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
sys.exit(main())
"""


class Files(NamedTuple):
    """The files of a translation."""

    source: Path
    output: Path

    def command(self) -> list[object]:
        """Return the command line after `onmt-entmax`."""
        return ["translate", "-model", MODEL, "-src", self.source, "-output", self.output]


def write_files(folder: Path, lines: int) -> Files:
    """Write a source of so many lines, and the output of an earlier translation."""
    files = Files(folder / "source", folder / "output")
    files.source.write_text("a b c\nd e\n" * (lines // 2))
    files.output.write_text(OLD)
    return files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return write_files(tmp_path, FEW)


def test_an_output_stays_the_old_one_on_a_full_disk(files: Files, tmp_path: Path) -> None:
    script = tmp_path / "limited.py"
    script.write_text(ON_A_FULL_DISK)
    done = run(str(script), *files.command())
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("output: cannot be written (File too large)")
    assert files.output.read_text() == OLD


def test_an_output_does_not_replace_the_input(files: Files) -> None:
    before = files.source.read_text()
    arguments = ("-model", MODEL, "-src", files.source, "-output", files.source)
    assert "would be overwritten" in fail("translate.py", *arguments)
    assert files.source.read_text() == before


class Killed(NamedTuple):
    """A translation that was killed while it wrote."""

    files: Files
    left: str
    """Content of the output right after the kill."""


class TestAKillWhileTheOutputIsWritten:
    @pytest.fixture(scope="class")
    def killed(self, tmp_path_factory: pytest.TempPathFactory) -> Killed:
        folder = tmp_path_factory.mktemp("killed")
        files = write_files(folder, MANY)
        command = [*CONSOLE, *files.command()]
        quiet = subprocess.DEVNULL
        with started(command, env=ENVIRONMENT, stdout=quiet, stderr=quiet) as process:
            while not list(folder.glob(".output.*.tmp")):  # the file that would replace the output
                assert process.poll() is None, "it ended, and no temporary file was seen"
                time.sleep(0.01)
        return Killed(files, files.output.read_text())

    def test_leaves_the_old_output(self, killed: Killed) -> None:
        assert killed.left == OLD

    def test_does_not_hinder_the_next_translation(self, killed: Killed) -> None:
        killed.files.source.write_text("a b c\n")
        assert run("onmt_entmax", *killed.files.command()).returncode == 0
        assert killed.files.output.read_text() == "c b a\n"
