"""Tokens that training saw of each language: how a vocabulary writes, reads and checks them."""

import json
import re

import pytest

from onmt_entmax.data.vocabulary import (
    SOURCE_SPECIALS,
    TARGET_SPECIALS,
    Vocabularies,
    Vocabulary,
    VocabularyError,
)
from onmt_entmax.data.vocabulary_content import as_content, read_vocabularies

TARGET = Vocabulary(TARGET_SPECIALS)


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
        """The content of the file."""
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
    """They stand beside those of sources, also if both sides have the same tokens."""
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
    ids=["no mapping", "a list of tokens", "an unknown language", "an unknown token"],
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
    ids=["no mapping", "a list of tokens", "an unknown language", "an unknown token"],
)
def test_seen_tokens_of_targets_are_checked(seen: object, message: str) -> None:
    with pytest.raises(VocabularyError, match=re.escape(message)):
        read_vocabularies(SOURCE_TOKENS, TARGET_TOKENS, None, seen)


def test_what_is_not_a_mapping_is_cut_in_the_error() -> None:
    with pytest.raises(VocabularyError, match="seen: must map languages") as raised:
        read_vocabularies(SOURCE_TOKENS, TARGET_TOKENS, "x" * 1000)
    assert len(str(raised.value)) < 200
