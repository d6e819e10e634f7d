"""Joining the tokens of Moses' tokeniser to text, by the rules of its detokeniser."""

import pytest

from onmt_entmax.data.detokenize import detokenize


@pytest.mark.parametrize(
    ("tokens", "text", "language"),
    [
        pytest.param(
            "a man , who sits ; he sleeps .",
            "a man, who sits; he sleeps.",
            "en",
            id="punctuation stands at the word before",
        ),
        pytest.param(
            "( two [ 2 ] men )",
            "(two [2] men)",
            "en",
            id="brackets stand at the words in them",
        ),
        pytest.param("it costs $ 5", "it costs $5", "en", id="a currency stands at the word after"),
        pytest.param("50 % of all", "50% of all", "en", id="percent stands at the word before"),
        pytest.param(
            "a woman 's hat ; it 'll rain",
            "a woman's hat; it'll rain",
            "en",
            id="English contractions stand at the word before",
        ),
        pytest.param(
            "walt disney 's werk", "walt disney 's werk", "de", id="German has no contractions"
        ),
        pytest.param("the boys ' hats", "the boys' hats", "en", id="an apostrophe after a plural"),
        pytest.param(
            '" one " and " two "', '"one" and "two"', "en", id="every second quotation mark closes"
        ),
        pytest.param(
            'sie sagt " ja , gern " und geht',
            'sie sagt "ja, gern" und geht',
            "de",
            id="punctuation within quotation marks",
        ),
        pytest.param(
            "it &apos;s &quot; a &amp; b &quot;", 'it\'s "a & b"', "en", id="escapes are undone"
        ),
        pytest.param(
            "a well @-@ known and @/@ or", "a well-known and/or", "en", id="divided words"
        ),
        pytest.param("", "", "en", id="nothing"),
    ],
)
def test_tokens_are_joined_by_the_rules_of_moses(tokens: str, text: str, language: str) -> None:
    assert detokenize(tokens, language) == text
