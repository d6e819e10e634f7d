"""Normalisation of text for translation: spaces, letters, escapes and marks of subwords."""

import pytest

from onmt_entmax.data.normalisation import normalise


@pytest.mark.parametrize(
    ("line", "language", "is_tokenised", "expected"),
    [
        pytest.param("  a\u00a0b \t c\u200b ", "en", False, "a b c", id="spaces"),
        pytest.param("u\u0308ber", "de", False, "über", id="decomposed letters"),
        pytest.param(
            "it &apos;s &quot; &amp;amp; &quot;", "en", True, 'it \'s " &amp; "', id="escapes"
        ),
        pytest.param("it &apos;s", "en", False, "it &apos;s", id="escapes in raw text"),
        pytest.param(
            "Ştiinţă Țară şi când în", "ro", False, "Stiinta Tara si cand in", id="Romanian"
        ),
        pytest.param("（全角）", "ja", False, "（全角）", id="full width"),
        pytest.param(
            "k\x96l\x85m ￭￨▁ ｟５０％｠", "ja", False, "k l m ■│_ ⦅５０％⦆", id="subword marks"
        ),
    ],
)
def test_lines_are_normalised_for_their_language(
    line: str, language: str, is_tokenised: bool, expected: str
) -> None:
    assert normalise(line, language, is_tokenised) == expected
