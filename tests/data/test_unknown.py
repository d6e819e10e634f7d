"""Tokens that a vocabulary does not have: what is counted, and what a warning names."""

import pytest

from onmt_entmax.data.unknown import UnknownTokens
from onmt_entmax.data.vocabulary import SOURCE_SPECIALS, Vocabulary

SPANISH, RUSSIAN = "lang=spanish", "lang=russian"
SEVERAL = Vocabulary(
    (*SOURCE_SPECIALS, SPANISH, RUSSIAN, "+V", *"abíАбв", "\u0301"),
    {SPANISH: frozenset({"+V", *"abí"}), RUSSIAN: frozenset({"+V", *"Абв"})},
)


def test_lines_without_unknown_tokens_give_no_warning() -> None:
    unknown = UnknownTokens()
    unknown.add(6, ())
    assert unknown.warnings() == []


@pytest.fixture
def unknown() -> UnknownTokens:
    """Two lines: six known tokens; one known token, and two and one that are unknown."""
    unknown = UnknownTokens()
    unknown.add(6, ())
    unknown.add(4, ("x", "\u200f", "x"))
    return unknown


def test_one_line_names_tokens_and_shares(unknown: UnknownTokens) -> None:
    assert unknown.warnings() == [
        "3 of 10 source tokens (30.00 %), in 1 of 2 lines, not in the source vocabulary: the model "
        "reads <unk> instead of 'x' (2), 'U+200F'"
    ]


def test_a_record_has_counts_and_shares(unknown: UnknownTokens) -> None:
    assert unknown.as_dict() == {
        "source_tokens": 10,
        "unknown_tokens": 3,
        "unknown_percent": 30.0,
        "unknown_sentences": 1,
        "unknown": {"x": 2, "\u200f": 1},
        "unseen_tokens": 0,
    }


def unseen_warnings(source: str) -> list[str]:
    """Return the warnings of a line that SEVERAL reads."""
    tokens, unknown = source.split(), UnknownTokens()
    unknown.add(len(tokens), (), SEVERAL.unseen(tokens))
    return unknown.warnings()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "lang=spanish +V б в б",
            "3 of 5 source tokens not seen in training for spanish: 'б' (2)",
        ),
        ("lang=spanish +V i \u0301", "for spanish: 'U+0301'"),
        ("lang=russian lang=spanish", "for russian: 'lang=spanish'"),
    ],
)
def test_tokens_that_training_saw_in_other_languages_alone_are_warned_of(
    source: str, message: str
) -> None:
    (warning,) = unseen_warnings(source)
    assert message in warning


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("lang=spanish +V a b í", id="all were seen"),
        pytest.param("lang=spanish +V a x", id="not in the vocabulary at all"),
        pytest.param("lang=french +V б", id="nothing is known of the language"),
        pytest.param("a б", id="no language"),
        pytest.param("", id="nothing"),
    ],
)
def test_other_tokens_are_not_warned_of(source: str) -> None:
    assert unseen_warnings(source) == []


def test_a_long_unknown_token_is_cut_in_a_warning() -> None:
    unknown = UnknownTokens()
    unknown.add(2, ("x" * 10**6,))
    assert unknown.warnings()[0].endswith(f"instead of '{'x' * 60}...'")
