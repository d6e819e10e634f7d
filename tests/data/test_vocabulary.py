"""Vocabularies: order, sizes, files, and the tokens that training saw of each language."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.config import VocabularyConfig
from onmt_entmax.data.vocabulary import (
    SOURCE_SPECIALS,
    TARGET_SPECIALS,
    Vocabularies,
    Vocabulary,
    VocabularyError,
)
from onmt_entmax.data.vocabulary_content import as_content, read_vocabularies
from onmt_entmax.data.vocabulary_files import build_vocabularies, read_counts
from onmt_entmax.files import write_files

TOKENS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=4)
TARGET = Vocabulary(TARGET_SPECIALS)
COUNTS = Counter("abbcb"), Counter("xyx")


def count() -> tuple[Counter[str], Counter[str]]:
    return COUNTS


def must_not_count() -> tuple[Counter[str], Counter[str]]:
    raise AssertionError("counted although every file is there")


@given(st.dictionaries(TOKENS, st.integers(1, 9)))
def test_decoding_undoes_encoding(counts: dict[str, int]) -> None:
    vocabulary = Vocabulary.from_counts(Counter(counts), TARGET_SPECIALS, 50)
    tokens = [token for token in counts if token in vocabulary]
    assert vocabulary.decode(vocabulary.encode(tokens)) == tokens


@given(st.dictionaries(TOKENS, st.integers(1, 9)), st.integers(1, 5), st.integers(1, 8))
def test_size_and_frequency_are_respected(counts: dict[str, int], size: int, multiple: int) -> None:
    vocabulary = Vocabulary.from_counts(Counter(counts), SOURCE_SPECIALS, size, 3, multiple)
    frequent = [token for token in counts if counts[token] >= 3]
    kept = [token for token in frequent if token in vocabulary]
    assert len(kept) == min(size, len(frequent))
    assert not [token for token in counts if counts[token] < 3 and token in vocabulary]
    assert len(vocabulary) % multiple == 0
    left_out = [counts[token] for token in frequent if token not in vocabulary]
    assert not left_out or max(left_out) <= min(counts[token] for token in kept)


def test_special_tokens_have_the_ids_of_opennmt() -> None:
    target = Vocabulary.from_counts(Counter("aab"), TARGET_SPECIALS, 10)
    assert (target.unk, target.pad, target.bos, target.eos) == (0, 1, 2, 3)
    assert target.tokens[4:] == ("a", "b")
    assert target.encode(["b", "never seen"]) == [5, 0]


@pytest.mark.parametrize("order", ["dcba", "bdac", "abcd"])
def test_tokens_of_equal_counts_are_in_alphabetical_order(order: str) -> None:
    """Whatever the order of the data, so that all processes and repeated runs agree on the ids."""
    vocabulary = Vocabulary.from_counts(Counter(order + "zz"), SOURCE_SPECIALS, 4)
    assert vocabulary.tokens[2:] == ("z", "a", "b", "c")


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (("<unk>", "<blank>", "a", "a"), "'a' is in the vocabulary twice"),
        (("a",), "<unk>"),
        (("<unk>", "<blank>", ""), "token 2 is '', but a token is not empty"),
        (("<unk>", "<blank>", "a b"), "token 2 is 'a b', but a token .* has no white space"),
        (("<unk>", "<blank>", "a\u2028"), "but a token is not empty and has no white space"),
    ],
)
def test_broken_lists_are_refused(tokens: tuple[str, ...], message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        Vocabulary(tokens)


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


# --- tokens that training saw of each language -------------------------------------------------


def test_a_vocabulary_without_languages_writes_none() -> None:
    source = Vocabulary((*SOURCE_SPECIALS, "a"))
    assert list(as_content(Vocabularies(source, TARGET))) == ["source", "target"]


class TestSeenTokens:
    @pytest.fixture
    def source(self) -> Vocabulary:
        tokens = (*SOURCE_SPECIALS, "lang=x", "lang=y", "a", "b")
        return Vocabulary(tokens, seen={"lang=y": frozenset("ba"), "lang=x": frozenset()})

    @pytest.fixture
    def content(self, source: Vocabulary) -> dict[str, object]:
        """What the file has."""
        return json.loads(json.dumps(as_content(Vocabularies(source, TARGET))))

    def test_are_written_in_order(self, content: dict[str, object]) -> None:
        assert content["seen"] == {"lang=x": "", "lang=y": "a b"}

    def test_are_read_back(self, source: Vocabulary, content: dict[str, object]) -> None:
        again = read_vocabularies(**content)
        assert again == (source, TARGET)
        assert again.source.seen == source.seen

    def test_tell_which_tokens_of_a_source_are_new_to_its_language(
        self, source: Vocabulary
    ) -> None:
        assert source.unseen(["lang=x", "a", "c"]) == (("lang=x", "a"),)


@pytest.mark.parametrize("shared", [True, False])
def test_target_tokens_of_languages_are_written_and_read(shared: bool) -> None:
    """Beside those of sources, also if both sides have the same tokens."""
    tokens = (*TARGET_SPECIALS, "lang=x", "a", "b")
    source = Vocabulary(tokens, seen={"lang=x": frozenset("a")})
    target = Vocabulary(tokens if shared else tokens[:-2], seen={"lang=x": frozenset(["</s>"])})
    content = json.loads(json.dumps(as_content(Vocabularies(source, target))))
    assert content["seen_targets"] == {"lang=x": "</s>"}
    again = read_vocabularies(**content)
    assert (again.source.seen, again.target.seen) == (source.seen, target.seen)


SOURCE_TOKENS, TARGET_TOKENS = [*SOURCE_SPECIALS, "lang=x", "a"], [*TARGET_SPECIALS, "a"]


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        ([], "seen: must map languages to tokens between spaces, not []"),
        ({"lang=x": ["a"]}, "seen: must map languages to tokens between spaces"),
        ({"lang=z": "a"}, "seen: 'lang=z' is not in the source vocabulary"),
        ({"lang=x": "a c"}, "seen: 'c' is not in the source vocabulary"),
    ],
)
def test_seen_tokens_of_sources_are_checked(seen: object, message: str) -> None:
    with pytest.raises(VocabularyError, match=re.escape(message)):
        read_vocabularies(SOURCE_TOKENS, TARGET_TOKENS, seen)


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        ([], "seen_targets: must map languages to tokens between spaces, not []"),
        ({"lang=x": ["a"]}, "seen_targets: must map languages to tokens between spaces"),
        # Languages are tokens of sources.
        ({"lang=z": "a"}, "seen_targets: 'lang=z' is not in the source vocabulary"),
        ({"lang=x": "a c"}, "seen_targets: 'c' is not in the target vocabulary"),
    ],
)
def test_seen_tokens_of_targets_are_checked(seen: object, message: str) -> None:
    with pytest.raises(VocabularyError, match=re.escape(message)):
        read_vocabularies(SOURCE_TOKENS, TARGET_TOKENS, None, seen)


def test_what_is_no_mapping_is_cut_in_the_error() -> None:
    with pytest.raises(VocabularyError, match="seen: must map languages") as raised:
        read_vocabularies(SOURCE_TOKENS, TARGET_TOKENS, "x" * 1000)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("a\t3\nb\n", "line 2"),
        ("a\t3\nb\tx\n", "line 2"),
        ("a\t3\nb\t2\na\t1\n", "line 3: 'a' is there twice"),
    ],
)
def test_broken_files_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "vocab"
    path.write_text(text)
    with pytest.raises(VocabularyError, match=message):
        read_counts(str(path))
