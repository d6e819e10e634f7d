"""Training data: pairs of lines, which pairs are left out, and errors."""

from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax.config import CorpusConfig, VocabularyConfig
from onmt_entmax.data.corpus import CorpusError, count_pairs
from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.data.training import TrainingData
from onmt_entmax.errors import UserError
from tests.data.corpora import TOKENDROP, data_config, numbered_corpus, pairs_of, write_corpus

MARK = "\ufeff"  # the byte order mark
NOTHING_FITS = {"src_seq_length": 0, "tgt_seq_length": 0}


def test_a_pair_is_a_line_of_each_side(tmp_path: Path) -> None:
    _, second, _ = pairs_of(numbered_corpus(tmp_path, size=3))
    assert second == (["corpus_1", "a", "b", "1"], ["CORPUS_1", "A", "B", "1"])


def test_each_side_has_its_own_prefix_and_its_own_length(tmp_path: Path) -> None:
    plain = numbered_corpus(tmp_path, size=3)
    prefixed = replace(plain, transforms=("prefix",), src_prefix="s", tgt_prefix="t")
    *_, third = pairs_of(prefixed, src_seq_length_trunc=3, tgt_seq_length_trunc=2)
    assert third == (["s", "corpus_1", "a"], ["t", "CORPUS_1"])


@pytest.fixture
def half_empty(tmp_path: Path) -> CorpusConfig:
    """A corpus of four pairs; the second has no target."""
    return write_corpus(tmp_path, "x", "abcd", ["A", "", "C", "D"])


def test_pairs_with_an_empty_side_are_left_out_silently(
    half_empty: CorpusConfig, recwarn: pytest.WarningsRecorder
) -> None:
    assert len(pairs_of(half_empty, skip_empty_level="silent")) == 3
    assert not recwarn


def test_pairs_with_an_empty_side_are_left_out_with_a_warning(half_empty: CorpusConfig) -> None:
    with pytest.warns(match="line 2 is empty on one side; the pair is skipped") as warned:
        assert len(pairs_of(half_empty, skip_empty_level="warning")) == 3
    assert len(warned) == 1


def test_pairs_with_an_empty_side_may_be_an_error(half_empty: CorpusConfig) -> None:
    with pytest.raises(CorpusError, match="line 2 is empty on one side"):
        pairs_of(half_empty, skip_empty_level="error")


@pytest.mark.parametrize(
    ("source", "target"),
    [([f"{MARK}a", f"{MARK}c"], ["x", f"{MARK}y"]), (["a", f"{MARK}c"], [f"{MARK}x", f"{MARK}y"])],
    ids=["in the source", "in the target"],
)
def test_a_byte_order_mark_is_not_part_of_the_first_token(
    tmp_path: Path, source: list[str], target: list[str]
) -> None:
    """It is one at the beginning of a file; elsewhere it is text."""
    pairs = pairs_of(write_corpus(tmp_path, "x", source, target))
    assert pairs == [(["a"], ["x"]), ([f"{MARK}c"], [f"{MARK}y"])]


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        pytest.param("abcd", "AB", "2 lines, but .* has 4", id="too few targets"),
        pytest.param("abcd", "", "0 lines, but .* has 4", id="no target"),
        pytest.param("", "", "is empty", id="no pair"),
    ],
)
def test_files_of_different_lengths_or_without_a_line_are_refused(
    tmp_path: Path, source: str, target: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        count_pairs(write_corpus(tmp_path, "x", source, target))


def test_a_line_that_is_not_text_is_named(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, "x", "abc", "abc")
    Path(corpus.path_src).write_bytes(b"a\n\xff\nc\n")
    with pytest.raises(UserError, match=":2: not UTF-8"):
        TrainingData.read(data_config(corpus), VocabularyConfig())


def test_a_filter_that_leaves_no_pair_is_an_error(tmp_path: Path) -> None:
    corpus = numbered_corpus(tmp_path, transforms=("filtertoolong",))
    with pytest.raises(CorpusError, match="corpus 'corpus_1': no pair is left"):
        TrainingData.read(data_config(corpus, transform_options=NOTHING_FITS), VocabularyConfig())


@pytest.mark.parametrize("workers", [0, 2])
def test_a_random_filter_that_leaves_no_pair_is_an_error_of_the_stream(
    tmp_path: Path, workers: int
) -> None:
    """What is random is not read before."""
    plain = TrainingData.read(data_config(numbered_corpus(tmp_path)), VocabularyConfig())
    corpus = numbered_corpus(tmp_path, transforms=("filtertoolong", "tokendrop"))
    config = data_config(corpus, transform_options={**NOTHING_FITS, **TOKENDROP})
    read = TrainingData.read(config, VocabularyConfig(), plain.vocabularies)
    batches = iter(TrainingBatches(read, workers))
    with pytest.raises(CorpusError, match="no training pair is left"):
        next(batches)
