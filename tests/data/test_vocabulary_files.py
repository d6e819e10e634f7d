"""Vocabulary files: new ones, present ones, one for both sides, and files that cannot be read."""

from collections import Counter
from pathlib import Path

import pytest

from onmt_entmax.config import VocabularyConfig
from onmt_entmax.data.vocabulary import (
    SOURCE_SPECIALS,
    TARGET_SPECIALS,
    TokenCounts,
    Vocabulary,
    VocabularyError,
)
from onmt_entmax.data.vocabulary_building import build_vocabularies
from onmt_entmax.data.vocabulary_files import read_counts
from onmt_entmax.files import write_files


def count() -> TokenCounts:
    """Return the counts of the tokens of a corpus."""
    return TokenCounts(source=Counter("abbcb"), target=Counter("xyx"))


def must_not_count() -> TokenCounts:
    """Fail: if every file is there, no corpus is read."""
    pytest.fail("counted although every file is there")


def ordinary(vocabulary: Vocabulary) -> tuple[str, ...]:
    """Return the tokens that are not special."""
    return tuple(token for token in vocabulary.tokens if token not in TARGET_SPECIALS)


# --- files that do not exist -----------------------------------------------------------------


@pytest.fixture
def config(tmp_path: Path) -> VocabularyConfig:
    """A file for each side. None of them exists, nor does the folder of the first."""
    source, target = tmp_path / "new" / "vocab.src", tmp_path / "vocab.tgt"
    return VocabularyConfig(src_vocab=str(source), tgt_vocab=str(target))


def test_new_vocabularies_have_the_most_frequent_tokens_first(config: VocabularyConfig) -> None:
    (source, target), _ = build_vocabularies(config, count)
    assert (ordinary(source), ordinary(target)) == (("b", "a", "c"), ("x", "y"))


def test_a_new_file_has_the_counts_of_the_data(config: VocabularyConfig) -> None:
    _, files = build_vocabularies(config, count)
    assert files[Path(config.src_vocab)] == "b\t3\na\t1\nc\t1\n"


def test_new_files_are_returned_and_not_written(config: VocabularyConfig) -> None:
    """The caller writes them when the run is known to work: a refused training writes none."""
    build_vocabularies(config, count)
    assert not Path(config.src_vocab).exists()


def test_new_files_are_read_as_the_same_vocabularies(config: VocabularyConfig) -> None:
    vocabularies, files = build_vocabularies(config, count)
    write_files(files)
    assert build_vocabularies(config, must_not_count) == (vocabularies, {})


def test_a_new_file_cannot_have_tokens_with_spaces(config: VocabularyConfig) -> None:
    with pytest.raises(VocabularyError, match="spaces in them, such as 'a b'"):
        build_vocabularies(config, lambda: TokenCounts(Counter({"a b": 1}), Counter({"a": 1})))


# --- files that exist ------------------------------------------------------------------------


@pytest.fixture
def with_source_file(config: VocabularyConfig) -> VocabularyConfig:
    """A file for each side, of which that of the source exists."""
    write_files({Path(config.src_vocab): "q\t7\n"})
    return config


def test_a_present_file_is_read(with_source_file: VocabularyConfig) -> None:
    (source, _), _ = build_vocabularies(with_source_file, count)
    assert ordinary(source) == ("q",)


def test_a_present_file_is_not_written_again(with_source_file: VocabularyConfig) -> None:
    _, files = build_vocabularies(with_source_file, count)
    assert [*files] == [Path(with_source_file.tgt_vocab)]


# --- limits ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "source", "target"),
    [
        pytest.param({"src_words_min_frequency": 2}, "b", "xy", id="rare source tokens"),
        pytest.param({"tgt_words_min_frequency": 2}, "bac", "x", id="rare target tokens"),
        pytest.param({"src_vocab_size": 2}, "ba", "xy", id="the size of the source vocabulary"),
        pytest.param({"tgt_vocab_size": 1}, "bac", "x", id="the size of the target vocabulary"),
    ],
)
def test_a_limit_of_one_side_leaves_the_other(
    limit: dict[str, int], source: str, target: str
) -> None:
    built, _ = build_vocabularies(VocabularyConfig(**limit), count)
    assert [*map("".join, map(ordinary, built))] == [source, target]


# --- one vocabulary for both sides -----------------------------------------------------------


def test_a_shared_vocabulary_is_one_object() -> None:
    built, _ = build_vocabularies(VocabularyConfig(share_vocab=True), count)
    assert built.source is built.target


def test_a_shared_vocabulary_has_the_tokens_of_both_sides() -> None:
    built, _ = build_vocabularies(VocabularyConfig(share_vocab=True), count)
    assert {*ordinary(built.source)} == {*"abcxy"}


@pytest.fixture
def sharing(config: VocabularyConfig) -> VocabularyConfig:
    """Two files for one vocabulary, as OpenNMT-py allows."""
    return VocabularyConfig(config.src_vocab, config.tgt_vocab, share_vocab=True)


def test_the_counts_of_two_files_of_a_shared_vocabulary_are_added(
    sharing: VocabularyConfig,
) -> None:
    files = {Path(sharing.src_vocab): "a\t2\nb\t3\n", Path(sharing.tgt_vocab): "x\t4\na\t5\n"}
    write_files(files)
    built, _ = build_vocabularies(sharing, must_not_count)
    assert ordinary(built.source) == ("a", "x", "b")  # 7, 4 and 3 times


def test_a_new_shared_vocabulary_is_written_to_the_file_of_the_source(
    sharing: VocabularyConfig,
) -> None:
    """So does onmt_build_vocab."""
    _, files = build_vocabularies(sharing, count)
    assert [*files] == [Path(sharing.src_vocab)]


# --- files that cannot be read ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "the vocabulary file is empty", id="nothing"),
        pytest.param("a\t3\nb\n", "line 2: expected a token and its count", id="no count"),
        pytest.param("a\t3\nb\tx\n", "line 2: expected a token and its count", id="no number"),
        pytest.param("a\nb 2\n", "line 2: expected one token", id="a count below tokens alone"),
        pytest.param("a\t3\nb\t2\na\t1\n", "line 3: 'a' is there twice", id="a token twice"),
    ],
)
def test_a_broken_file_is_refused_with_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "vocab"
    path.write_text(text)
    with pytest.raises(VocabularyError, match=f"^{path}: {message}"):
        read_counts(str(path))


def test_a_file_without_counts_keeps_its_order(tmp_path: Path) -> None:
    path = tmp_path / "vocab"
    path.write_text("b\nc\na\n")
    vocabulary = Vocabulary.from_counts(read_counts(str(path)), SOURCE_SPECIALS, 9)
    assert ordinary(vocabulary) == ("b", "c", "a")
