"""The docstring of `onmt_entmax.cli` has a map: a list of all files that are no command."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from onmt_entmax import cli
from onmt_entmax.cli.main import COMMANDS

FILES = {path.stem for path in Path(cli.__path__[0]).glob("*.py")}
# The text above the map describes these.
DESCRIBED_ABOVE = {re.sub("[ -]", "_", command) for command in COMMANDS} | {"__init__", "main"}

# An item of the map is `- subject: files`, over one line or more. The subject may name commands.
ITEMS = re.findall(r"^- [^:]+:(.+?)(?=^- |\Z)", cli.__doc__ or "", re.MULTILINE | re.DOTALL)
# Names of files, such as `tables`, or patterns for files of one subject, such as `parallel_*`.
PATTERNS = [pattern for item in ITEMS for pattern in re.findall("`(.+?)`", item)]


@pytest.mark.parametrize("file", sorted(FILES - DESCRIBED_ABOVE))
def test_a_file_that_is_no_command_is_in_the_map(file: str) -> None:
    assert any(fnmatch(file, pattern) for pattern in PATTERNS)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_map_names_files_that_exist(pattern: str) -> None:
    assert any(fnmatch(file, pattern) for file in FILES - DESCRIBED_ABOVE)
