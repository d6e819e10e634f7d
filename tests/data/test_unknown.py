"""Tokens that training never saw, at all or in their language: counts, and warnings of them."""

import pytest

from onmt_entmax.data.unknown import UnknownTokens
from onmt_entmax.data.unknown_warnings import unknown_warnings
from onmt_entmax.data.vocabulary import SOURCE_SPECIALS, Vocabulary

# --- tokens that the vocabulary lacks ---


def test_texts_without_unknown_tokens_give_no_warning() -> None:
    counts = UnknownTokens()
    counts.add(6, ())
    assert [*unknown_warnings(counts)] == []


@pytest.fixture
def two_texts() -> UnknownTokens:
    """Counts of two texts: six known tokens; and one known token with three unknown ones.

    One of the unknown tokens is U+200F, which is invisible.
    """
    counts = UnknownTokens()
    counts.add(6, ())
    counts.add(4, ("x", "\u200f", "x"))
    return counts


def test_a_warning_names_the_unknown_tokens_and_their_share(two_texts: UnknownTokens) -> None:
    assert [*unknown_warnings(two_texts)] == [
        "3 of 10 source tokens (30.00 %), in 1 of 2 lines, not in the source vocabulary: the model "
        "reads <unk> instead of 'x' (2), 'U+200F'"
    ]


def test_a_summary_has_the_counts_and_the_share_of_unknown_tokens(two_texts: UnknownTokens) -> None:
    assert two_texts.as_dict() == {
        "source_tokens": 10,
        "unknown_tokens": 3,
        "unknown_percent": 30.0,
        "unknown_sentences": 1,
        "unknown": {"x": 2, "\u200f": 1},
        "unseen_tokens": 0,
    }


def test_an_iterator_without_tokens_is_no_text_with_unknown_ones() -> None:
    counts = UnknownTokens()
    counts.add(6, iter(()))
    assert counts.as_dict()["unknown_sentences"] == 0


def test_an_iterator_of_unknown_tokens_counts_each() -> None:
    counts = UnknownTokens()
    counts.add(6, iter(("x", "x")))
    assert (counts.texts_with_unknown, counts.unknown) == (1, {"x": 2})


def test_a_share_without_the_number_of_all_tokens_is_at_most_all() -> None:
    counts = UnknownTokens()
    counts.add(0, {"x": 2})
    assert counts.percent == 100


def test_a_long_unknown_token_is_cut_in_a_warning() -> None:
    counts = UnknownTokens()
    counts.add(2, ("x" * 10**6,))
    (line,) = unknown_warnings(counts)
    assert line.endswith(f"instead of '{'x' * 60}...'")


# --- tokens that training did not see in the language of the source ---

SPANISH, RUSSIAN = "lang=spanish", "lang=russian"
TWO_LANGUAGES = Vocabulary(
    (*SOURCE_SPECIALS, SPANISH, RUSSIAN, "+V", *"abíАбв", "\u0301"),
    {SPANISH: frozenset({"+V", *"abí"}), RUSSIAN: frozenset({"+V", *"Абв"})},
)


def unseen_warnings(source: str) -> list[str]:
    """Return the warnings of a source that a model with `TWO_LANGUAGES` reads."""
    tokens, counts = source.split(), UnknownTokens()
    counts.add(len(tokens), (), TWO_LANGUAGES.unseen(tokens))
    return [*unknown_warnings(counts)]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param(
            "lang=spanish +V б в б",
            "3 of 5 source tokens not seen in training for spanish: 'б' (2), 'в'",
            id="letters of the other language",
        ),
        pytest.param(
            "lang=spanish +V i \u0301",
            "1 of 4 source tokens not seen in training for spanish: 'U+0301'",
            id="an accent, and a letter that the vocabulary lacks",
        ),
        pytest.param(
            "lang=russian lang=spanish",
            "1 of 2 source tokens not seen in training for russian: 'lang=spanish'",
            id="the token of the other language",
        ),
    ],
)
def test_a_warning_names_known_tokens_that_the_language_never_had(
    source: str, message: str
) -> None:
    assert unseen_warnings(source) == [message]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("lang=spanish +V a b í", id="all were seen"),
        pytest.param("lang=spanish +V a x", id="not in the vocabulary at all"),
        pytest.param("lang=french +V б", id="nothing is recorded of the language"),
        pytest.param("a б", id="no language"),
        pytest.param("", id="nothing"),
    ],
)
def test_other_tokens_are_not_said_to_be_unseen(source: str) -> None:
    assert unseen_warnings(source) == []


def test_a_warning_of_targets_calls_unseen_tokens_those_of_the_target() -> None:
    counts = UnknownTokens()
    counts.add(3, (), [(SPANISH, "б")])
    (line,) = unknown_warnings(counts, "target")
    assert line == "1 of 3 target tokens not seen in training for spanish: 'б'"
