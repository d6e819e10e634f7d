"""`onmt-entmax prepare files`: files that it refuses."""

import gzip
from pathlib import Path

import pytest

from onmt_entmax.cli import prepare_files
from tests.cli.parallel_pairs import DEV, arguments_with, write_pairs
from tests.in_process import refusal


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            {"dev.en": b"one\n"}, "dev.en: 1 line, but dev.ro has 20;", id="lengths differ"
        ),
        pytest.param(
            {"dev.en": b"a\n" + b"\n" * 19},
            "dev.en: line 2 is empty on one side",
            id="a line without a partner",
        ),
        pytest.param({"train.ro": None}, "no such file, nor with .xz or .gz", id="a missing file"),
        pytest.param(
            {"train.ro": None, "train.ro.gz": gzip.compress(b"a\n")[:-9]},
            "train.ro.gz: cannot read",
            id="a cut archive",
        ),
        pytest.param({"train.ro": b"a\n\xff\n"}, ":2: not UTF-8 text", id="another encoding"),
        pytest.param(
            {"data": b"a file"},
            "cannot be written, since data is a file, not a folder",
            id="a file in place of the folder",
        ),
    ],
)
def test_a_bad_file_is_refused_and_nothing_is_written(
    changes: dict[str, bytes | None], message: str, working_folder: Path
) -> None:
    """The changes are new contents of files, by their names; None: the file is missing."""
    write_pairs(working_folder)
    for name, content in changes.items():
        if content is None:
            Path(name).unlink()
        else:
            Path(name).write_bytes(content)
    assert message in refusal(prepare_files.main, arguments_with(DEV), progress=True)
    assert not Path("data", "train.ro").exists()
