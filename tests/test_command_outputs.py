"""The output of a command: whole or unchanged whatever happens, a file, a pipe or a device."""

import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.commands import CONSOLE, ENVIRONMENT, console, fail, run, started
from tests.reversing_model import FOLDER as MODEL

LINES = 400  # of the source: enough to see the temporary file while it is written


def write_source(folder: Path) -> Path:
    """Write the source; return its path."""
    path = folder / "s"
    path.write_text("a b c\nd e\n" * (LINES // 2))
    return path


def write_old_output(folder: Path) -> Path:
    """Write the output of an earlier translation; return its path."""
    path = folder / "o"
    path.write_text("OLD\n")
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_source(tmp_path)


def translation(source: Path, output: object) -> list[object]:
    """Return the arguments of the console command that translate."""
    return ["translate", "-model", MODEL, "-src", source, "-output", output]


class Killed(NamedTuple):
    """A translation that was killed while it wrote a temporary file."""

    source: Path
    output: Path
    left: str
    """What the output held after the kill."""


class TestAnOutput:
    """It is the old one, or the whole new one."""

    @pytest.fixture
    def output(self, tmp_path: Path) -> Path:
        return write_old_output(tmp_path)

    @pytest.fixture(scope="class")
    def killed(self, tmp_path_factory: pytest.TempPathFactory) -> Killed:
        folder = tmp_path_factory.mktemp("killed")
        source, output = write_source(folder), write_old_output(folder)
        quiet = subprocess.DEVNULL
        with started(
            [*CONSOLE, *translation(source, output)], env=ENVIRONMENT, stdout=quiet, stderr=quiet
        ) as process:
            while not list(folder.glob(".o.*.tmp")):
                assert process.poll() is None, "it ended, and no temporary file was seen"
                time.sleep(0.01)
        return Killed(source, output, output.read_text())

    def test_stays_on_a_disk_that_is_full(self, source: Path, output: Path) -> None:
        limited = [
            "bash",
            "-c",
            'ulimit -f 1; exec "$@"',
            "limited",
            *CONSOLE,
            *translation(source, output),
        ]
        done = subprocess.run(limited, capture_output=True, text=True, env=ENVIRONMENT)
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].endswith("o: cannot be written (File too large)")
        assert output.read_text() == "OLD\n"

    def test_is_the_old_one_after_a_kill_while_it_is_written(self, killed: Killed) -> None:
        assert killed.left == "OLD\n"

    def test_is_replaced_by_the_run_after_a_kill(self, killed: Killed) -> None:
        assert run("onmt_entmax", *translation(killed.source, killed.output)).returncode == 0
        assert killed.output.read_text().count("\n") == LINES


def test_an_output_does_not_replace_the_input(source: Path) -> None:
    files = ("-model", MODEL, "-src", source, "-output", source)
    assert "would be overwritten" in fail("translate.py", *files)
    assert source.read_text().startswith("a b c\n")


# --- pipes and devices ---


@pytest.fixture
def few_lines(tmp_path: Path) -> Path:
    (tmp_path / "few").write_text("a b c\nd e\n")
    return tmp_path / "few"


def test_an_output_may_be_a_pipe(few_lines: Path) -> None:
    done = subprocess.run(
        [*console(), *translation(few_lines, "/dev/stdout")],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert (done.returncode, done.stdout.splitlines()[1]) == (0, "e d")


def test_an_output_may_be_a_device(few_lines: Path) -> None:
    done = subprocess.run(
        [*console(), *translation(few_lines, "/dev/null")], capture_output=True, env=ENVIRONMENT
    )
    assert done.returncode == 0
    assert Path("/dev/null").is_char_device()


def test_help_that_finds_a_full_device_ends_with_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*console(), "translate", "-h"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
    assert done.returncode == 2
    assert done.stderr == "onmt-entmax translate: error: No space left on device\n"
