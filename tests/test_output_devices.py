"""Commands that write to a pipe or to a device."""

import subprocess
from pathlib import Path

import pytest

from tests.commands import ENVIRONMENT, console
from tests.reversing_model import FOLDER as MODEL


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_text("a b c\nd e\n")
    return path


def translate(source: Path, output: str) -> subprocess.CompletedProcess[str]:
    """Translate with the model that reverses its source."""
    command = [*console(), "translate", "-model", MODEL, "-src", source, "-output", output]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)


def test_an_output_may_be_a_pipe(source: Path) -> None:
    done = translate(source, "/dev/stdout")
    assert done.returncode == 0
    assert done.stdout.splitlines()[1] == "e d"


def test_an_output_that_is_a_device_stays_a_device(source: Path) -> None:
    assert translate(source, "/dev/null").returncode == 0
    assert Path("/dev/null").is_char_device()


def test_help_on_a_full_device_ends_with_one_line() -> None:
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
