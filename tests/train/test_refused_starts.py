"""A training that cannot start writes nothing."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from tests.toy import write_config
from tests.train.runs import train_again


def files_in(folder: Path) -> set[Path]:
    """Return all files in a folder and its folders."""
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(["-train_from", "missing"], "no such model folder", id="no checkpoint"),
        pytest.param(
            ["-data", '{"a": {"path_src": "missing", "path_tgt": "missing"}}'],
            "missing",
            id="no corpus",
        ),
        pytest.param(
            ["-transforms", "filtertoolong", "-src_seq_length", "1"],
            "no pair is left",
            id="no pair",
        ),
    ],
)
def test_a_refused_start_leaves_no_run_folder_and_no_file(
    tmp_path: Path, options: Sequence[str], message: str
) -> None:
    run = tmp_path / "new" / "run"
    config = write_config(tmp_path, save_model=str(run))
    before = files_in(tmp_path)
    with pytest.raises(UserError, match=message):
        train_again(["-config", str(config)], *options)
    assert not run.exists()
    assert files_in(tmp_path) == before
