"""Tokens that a vocabulary does not have: what is counted, and what a warning names."""

import pytest

from onmt_entmax.data.unknown import UnknownTokens
from onmt_entmax.data.vocabulary import SOURCE_SPECIALS, Vocabulary
from onmt_entmax.source_warnings import described_token

SPANISH, RUSSIAN = "lang=spanish", "lang=russian"
SEVERAL = Vocabulary(
    (*SOURCE_SPECIALS, SPANISH, RUSSIAN, "+V", *"abíАбв", "\u0301"),
    {SPANISH: frozenset({"+V", *"abí"}), RUSSIAN: frozenset({"+V", *"Абв"})},
)


def test_one_line_names_tokens_and_shares() -> None:
    unknown = UnknownTokens()
    unknown.add(6, ())
    assert unknown.warnings() == []
    unknown.add(4, ("x", "\u200f", "x"))
    assert unknown.warnings() == [
        "3 of 10 source tokens (30.00 %), in 1 of 2 lines, not in the source vocabulary: the model "
        "reads <unk> instead of 'x' (2), 'U+200F'"
    ]
    assert unknown.as_dict() == {
        "source_tokens": 10,
        "unknown_tokens": 3,
        "unknown_percent": 30.0,
        "unknown_sentences": 1,
        "unknown": {"x": 2, "\u200f": 1},
        "unseen_tokens": 0,
    }


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("lang=spanish +V a b í", None),
        ("lang=spanish +V a x", None),  # not known at all
        ("lang=french +V б", None),  # nothing is known of the language
        ("a б", None),
        ("", None),
        ("lang=spanish +V б в б", "3 of 5 source tokens not seen in training for spanish: 'б' (2)"),
        ("lang=spanish +V i \u0301", "for spanish: 'U+0301'"),
        ("lang=russian lang=spanish", "for russian: 'lang=spanish'"),
    ],
)
def test_tokens_that_training_saw_in_other_languages_alone(source: str, said: str | None) -> None:
    tokens, counted = source.split(), UnknownTokens()
    counted.add(len(tokens), (), SEVERAL.unseen(tokens))
    warnings = counted.warnings()
    assert len(warnings) == (said is not None)
    assert said is None or said in warnings[0]


def test_a_long_token_is_cut() -> None:
    unknown = UnknownTokens()
    unknown.add(2, ("x" * 10**6,))
    assert unknown.warnings()[0].endswith(f"instead of '{'x' * 60}...'")
    assert described_token(f"+{'X' * 10**6}") == f"tag {'X' * 60}..."
