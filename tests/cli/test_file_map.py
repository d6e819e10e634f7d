"""The docstring of `onmt_entmax.cli` says what each file is for that is not a command itself."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from onmt_entmax import cli
from onmt_entmax.cli.main import COMMANDS

COMMAND_FILES = {re.sub("[ -]", "_", command) for command in COMMANDS}
FILES = {path.stem for path in Path(cli.__path__[0]).glob("*.py")} - {"__init__"}
# Names of files in the docstring, such as `tables` or `parallel_*`, and words such as `predict`.
NAMES = re.findall(r"`([a-z_*]+)`", cli.__doc__ or "")


@pytest.mark.parametrize("file", sorted(FILES - COMMAND_FILES - {"main"}))
def test_a_file_that_is_no_command_is_in_the_map(file: str) -> None:
    assert any(fnmatch(file, name) for name in NAMES)
