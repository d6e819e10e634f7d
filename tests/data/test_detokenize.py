"""Tokens of Moses to text: pairs as Moses' own tokeniser and detokeniser have them."""

import pytest

from onmt_entmax.data.detokenize import detokenize


@pytest.mark.parametrize(
    ("tokens", "text", "language"),
    [
        ("a man , who sits ; he sleeps .", "a man, who sits; he sleeps.", "en"),
        ("( two [ 2 ] men )", "(two [2] men)", "en"),
        ("a woman 's hat ; it 'll rain", "a woman's hat; it'll rain", "en"),
        ("the boys ' hats", "the boys' hats", "en"),
        ("walt disney 's werk", "walt disney 's werk", "de"),
        ('sie sagt " ja , gern " und geht', 'sie sagt "ja, gern" und geht', "de"),
        ('" one " and " two "', '"one" and "two"', "en"),
        ("it &apos;s &quot; a &amp; b &quot;", 'it\'s "a & b"', "en"),
        ("a well @-@ known and @/@ or", "a well-known and/or", "en"),
        ("it costs $ 5", "it costs $5", "en"),
        ("50 % of all", "50% of all", "en"),
        ("", "", "en"),
    ],
)
def test_tokens_are_joined_as_moses_does(tokens: str, text: str, language: str) -> None:
    assert detokenize(tokens, language) == text
