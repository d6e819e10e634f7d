"""Files of vocabularies: new ones, present ones, and one for both sides."""

from collections import Counter
from pathlib import Path

import pytest

from onmt_entmax.config import VocabularyConfig
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, VocabularyError
from onmt_entmax.data.vocabulary_building import build_vocabularies
from onmt_entmax.data.vocabulary_files import read_counts
from onmt_entmax.files import write_files


def count() -> tuple[Counter[str], Counter[str]]:
    """Return the counts of source and target tokens, as of a corpus."""
    return Counter("abbcb"), Counter("xyx")


def must_not_count() -> tuple[Counter[str], Counter[str]]:
    """Fail: where every file is there, no corpus is to be read."""
    raise AssertionError("counted although every file is there")


class TestNewFiles:
    @pytest.fixture
    def config(self, tmp_path: Path) -> VocabularyConfig:
        source, target = tmp_path / "new" / "vocab.src", tmp_path / "vocab.tgt"
        return VocabularyConfig(src_vocab=str(source), tgt_vocab=str(target))

    def test_hold_the_counts(self, config: VocabularyConfig) -> None:
        vocabularies, files = build_vocabularies(config, count)
        assert vocabularies.source.tokens[2:] == ("b", "a", "c")
        assert files[Path(config.src_vocab)] == "b\t3\na\t1\nc\t1\n"

    def test_are_written_by_the_caller(self, config: VocabularyConfig) -> None:
        """Who knows when: a refused training writes none."""
        build_vocabularies(config, count)
        assert not Path(config.src_vocab).exists()

    def test_are_read_back_without_counting(self, config: VocabularyConfig) -> None:
        vocabularies, files = build_vocabularies(config, count)
        write_files(files)
        assert build_vocabularies(config, must_not_count) == (vocabularies, {})

    def test_cannot_hold_tokens_with_spaces(self, config: VocabularyConfig) -> None:
        with pytest.raises(VocabularyError, match="spaces in them, such as 'a b'"):
            build_vocabularies(config, lambda: (Counter({"a b": 1}), Counter({"a": 1})))


def test_a_present_file_is_never_overwritten(tmp_path: Path) -> None:
    source, target = tmp_path / "vocab.src", tmp_path / "vocab.tgt"
    source.write_text("q\t7\n")
    built, files = build_vocabularies(VocabularyConfig(str(source), str(target)), count)
    assert list(files) == [target]
    assert built.source.tokens[2:] == ("q",)
    assert built.target.tokens[4:] == ("x", "y")


@pytest.mark.parametrize(
    ("changes", "source", "target"),
    [
        ({"src_words_min_frequency": 2}, "b", "xy"),
        ({"tgt_words_min_frequency": 2}, "bac", "x"),
        ({"src_vocab_size": 2}, "ba", "xy"),
        ({"tgt_vocab_size": 1}, "bac", "x"),
    ],
)
def test_each_side_has_its_own_limits(changes: dict, source: str, target: str) -> None:
    built, _ = build_vocabularies(VocabularyConfig(**changes), count)
    assert "".join(built.source.tokens[2:]) == source
    assert "".join(built.target.tokens[4:]) == target


def test_a_shared_vocabulary_is_one() -> None:
    built, _ = build_vocabularies(VocabularyConfig(share_vocab=True), count)
    assert built.source is built.target
    assert set("abcxy") <= set(built.source.tokens)


def test_two_files_of_a_shared_vocabulary_are_merged_as_by_opennmt(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("a\t2\nb\t3\n", encoding="utf-8")
    target.write_text("x\t4\na\t5\n", encoding="utf-8")
    config = VocabularyConfig(str(source), str(target), share_vocab=True)
    built, _ = build_vocabularies(config, must_not_count)
    assert built.source is built.target
    assert built.source.tokens[len(TARGET_SPECIALS) :] == ("a", "x", "b")


def test_a_new_shared_vocabulary_is_one_file_as_of_onmt_build_vocab(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    config = VocabularyConfig(str(source), str(target), share_vocab=True)
    _, files = build_vocabularies(config, count)
    assert list(files) == [source]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "empty", id="nothing"),
        pytest.param("a\t3\nb\n", "line 2", id="no count"),
        pytest.param("a\t3\nb\tx\n", "line 2", id="a count that is no number"),
        pytest.param("a\t3\nb\t2\na\t1\n", "line 3: 'a' is there twice", id="a token twice"),
    ],
)
def test_broken_files_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "vocab"
    path.write_text(text)
    with pytest.raises(VocabularyError, match=message):
        read_counts(str(path))
