"""The tokens that training saw in each language, which the vocabulary file of a model folder has.

`Vocabulary.seen` maps the token of each language, such as `lang=x`, to them.
"""

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

SOURCE = Vocabulary(
    (*SOURCE_SPECIALS, "lang=x", "lang=y", "a", "b"),
    seen={"lang=y": frozenset("ba"), "lang=x": frozenset()},
)
TARGET = Vocabulary((*TARGET_SPECIALS, "a"), seen={"lang=x": frozenset(["</s>"])})


def content_of(vocabularies: Vocabularies) -> dict[str, object]:
    """Return the content of a vocabulary file, as it is after writing and reading JSON."""
    return json.loads(json.dumps(as_content(vocabularies)))


# --- writing and reading ---


def test_seen_source_tokens_are_written_in_alphabetical_order() -> None:
    assert content_of(Vocabularies(SOURCE, TARGET))["seen"] == {"lang=x": "", "lang=y": "a b"}


def test_seen_target_tokens_are_written_under_a_key_of_their_own() -> None:
    assert content_of(Vocabularies(SOURCE, TARGET))["seen_targets"] == {"lang=x": "</s>"}


def test_a_vocabulary_without_languages_is_written_without_seen_tokens() -> None:
    source, target = Vocabulary((*SOURCE_SPECIALS, "a")), Vocabulary(TARGET_SPECIALS)
    assert content_of(Vocabularies(source, target)).keys() == {"source", "target"}


SHARED = (*TARGET_SPECIALS, "lang=x", "a", "b")  # tokens of both sides, as with `share_vocab`


@pytest.mark.parametrize(
    "vocabularies",
    [
        pytest.param(Vocabularies(SOURCE, TARGET), id="two vocabularies"),
        pytest.param(
            Vocabularies(
                Vocabulary(SHARED, seen={"lang=x": frozenset("a")}),
                Vocabulary(SHARED, seen={"lang=x": frozenset("b")}),
            ),
            id="the same tokens on both sides",
        ),
    ],
)
def test_seen_tokens_are_read_as_they_were_written(vocabularies: Vocabularies) -> None:
    again = read_vocabularies(**content_of(vocabularies))
    assert again == vocabularies  # which compares the lists of tokens alone
    assert [side.seen for side in again] == [side.seen for side in vocabularies]


# --- use ---


@pytest.mark.parametrize(
    ("source", "unseen"),
    [
        pytest.param(["lang=y", "a", "b"], (), id="all were seen"),
        pytest.param(["lang=x", "a", "b"], (("lang=x", "a"), ("lang=x", "b")), id="none was seen"),
        pytest.param(["lang=x", "c"], (), id="not in the vocabulary at all"),
        pytest.param(["lang=z", "a"], (), id="nothing is recorded of the language"),
    ],
)
def test_known_tokens_that_the_language_of_a_source_never_had_are_named(
    source: list[str], unseen: tuple[tuple[str, str], ...]
) -> None:
    assert SOURCE.unseen(source) == unseen


# --- content that cannot be read ---


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        pytest.param(
            [], "seen: must map languages to tokens between spaces, not []", id="no mapping"
        ),
        pytest.param(
            {"lang=x": ["a"]},
            "seen: must map languages to tokens between spaces",
            id="a list of tokens",
        ),
        pytest.param(
            {"lang=z": "a"},
            "seen: 'lang=z' is not in the source vocabulary",
            id="an unknown language",
        ),
        pytest.param(
            {"lang=x": "a c"}, "seen: 'c' is not in the source vocabulary", id="an unknown token"
        ),
    ],
)
def test_seen_source_tokens_are_checked(seen: object, message: str) -> None:
    content = {"source": [*SOURCE.tokens], "target": [*TARGET.tokens], "seen": seen}
    with pytest.raises(VocabularyError, match=re.escape(message)):
        read_vocabularies(**content)


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        pytest.param([], "must map languages to tokens between spaces, not []", id="no mapping"),
        pytest.param(
            {"lang=z": "a"},
            "'lang=z' is not in the source vocabulary",  # which has the languages
            id="an unknown language",
        ),
        pytest.param(
            {"lang=x": "a c"}, "'c' is not in the target vocabulary", id="an unknown token"
        ),
    ],
)
def test_seen_target_tokens_are_checked(seen: object, message: str) -> None:
    content = {"source": [*SOURCE.tokens], "target": [*TARGET.tokens], "seen_targets": seen}
    with pytest.raises(VocabularyError, match=re.escape(f"seen_targets: {message}")):
        read_vocabularies(**content)


def test_a_long_value_is_cut_in_the_error() -> None:
    with pytest.raises(VocabularyError, match="seen: must map languages") as raised:
        read_vocabularies([*SOURCE.tokens], [*TARGET.tokens], "x" * 1000)
    assert len(str(raised.value)) < 200
