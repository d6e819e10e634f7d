"""Files of multi-label data: cut ones are refused, and results belong to their contents."""

from pathlib import Path

import pytest

from onmt_entmax.errors import UserError
from tools.papers.multilabel_data import read_examples
from tools.papers.multilabel_results import key_of
from tools.papers.multilabel_settings import Settings


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    data, labels = tmp_path / "a.arff", tmp_path / "a.xml"
    data.write_text("@relation x\n")
    labels.write_text('<labels><label name="y"/></labels>')
    with pytest.raises(UserError, match=r"a\.arff .*: no @data$"):
        read_examples(data, labels)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of a classifier of two losses, whose training file is `train`."""
    return Settings(
        name="scene",
        train=str(tmp_path / "train"),
        labels=str(tmp_path / "labels"),
        out="out",
        folds=2,
        seeds=2,
        losses=["sparsemax", 1.25],
        l2=[0.1],
        standardise=False,
    )


def test_rows_that_move_between_files_change_the_key(tmp_path: Path, settings: Settings) -> None:
    """Results of another key are measured again."""
    (tmp_path / "labels").touch()

    def key_of_rows(train: str, test: str) -> dict[str, object]:
        (tmp_path / "train").write_text(train)
        (tmp_path / "test").write_text(test)
        return key_of(settings, tmp_path / "test")

    whole = key_of_rows("row 1\nrow 2\n", "row 3\n")
    assert key_of_rows("row 1\n", "row 2\nrow 3\n") != whole
