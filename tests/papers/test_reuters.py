"""Reuters (RCV1), as `tools.papers.corpora` fetches it through scikit-learn."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from scipy.sparse import csr_matrix

from tests.in_process import refusal, success
from tools.papers import corpora
from tools.papers.multilabel_data import Examples, read_examples


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


FETCH = "sklearn.datasets.fetch_rcv1"  # by name: to import it takes a second
RCV1 = {
    "train": SimpleNamespace(
        data=csr_matrix([[0, 0.5, 0], [0.25, 0, 1 / 3], [0, 0, 1]]),
        target=csr_matrix([[0, 1], [1, 1], [0, 0]]),
        target_names=["C1 & C2", "E"],
    ),
    "test": SimpleNamespace(
        data=csr_matrix([[0, 0, 2.0]]), target=csr_matrix([[1, 0]]), target_names=["C1 & C2", "E"]
    ),
}


@pytest.fixture
def reuters(monkeypatch: pytest.MonkeyPatch) -> dict[str, Examples]:
    """The two files of Reuters, read again; scikit-learn has the rows of `RCV1`."""
    monkeypatch.setattr(FETCH, lambda subset: RCV1[subset])
    success(corpora.main, ["reuters", "--out", "data", "--test"])
    labels = Path("data/reuters.xml")
    return {part: read_examples(Path(f"data/reuters-{part}.svm"), labels, 3) for part in RCV1}


@pytest.mark.parametrize("part", RCV1)
def test_features_of_reuters_are_written_exactly(reuters: dict[str, Examples], part: str) -> None:
    assert (reuters[part].features != RCV1[part].data).nnz == 0


@pytest.mark.parametrize("part", RCV1)
def test_labels_of_reuters_are_written(reuters: dict[str, Examples], part: str) -> None:
    assert torch.equal(reuters[part].labels, torch.from_numpy(RCV1[part].target.toarray()) > 0)


def test_names_of_labels_of_reuters_are_written(reuters: dict[str, Examples]) -> None:
    assert reuters["train"].names == ("C1 & C2", "E")


def test_reuters_comes_from_no_folder() -> None:
    message = refusal(corpora.main, ["reuters", "--from", "copy", "--out", "data"])
    assert "reuters comes through scikit-learn, not from a folder: omit --from" in message


def test_reuters_that_cannot_be_downloaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(subset: str) -> SimpleNamespace:
        raise OSError(f"no network for {subset}")

    monkeypatch.setattr(FETCH, fail)
    message = refusal(corpora.main, ["reuters", "--out", "data"])
    assert "reuters: scikit-learn cannot fetch it (no network for train); try again" in message
