"""Tags: how the cell of a table is divided into tags, and the token of a tag."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.strings.marks import decode_tag, encode_tag, is_tag, split_tags

# --- a cell is divided at `;`, except within brackets ---


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        pytest.param("", [], id="none"),
        pytest.param("V", ["V"], id="one"),
        pytest.param("V;PRS;NOM(3,SG)", ["V", "PRS", "NOM(3,SG)"], id="a comma between brackets"),
        pytest.param(
            "N;NOM(PL;PSS(1;PL));X", ["N", "NOM(PL;PSS(1;PL))", "X"], id="brackets within brackets"
        ),
        pytest.param("ADJ;(non)NOM;SG", ["ADJ", "(non)NOM", "SG"], id="brackets that begin a tag"),
        pytest.param("A(B(1);C);X", ["A(B(1);C)", "X"], id="inner brackets end first"),
        pytest.param("V);A", ["V)", "A"], id="a bracket that opens nowhere"),
    ],
)
def test_brackets_hold_a_tag_together(text: str, tags: list[str]) -> None:
    assert list(split_tags(text)) == tags


@given(st.text("AV;()", min_size=1))
def test_tags_that_are_joined_are_the_text_again(text: str) -> None:
    assert ";".join(split_tags(text)) == text


# --- tokens ---

# Any text may be a tag. Some have the signs of tags, languages, spaces and escapes.
TAGS = st.text(min_size=1) | st.text("ab+U▁ \u00a0\u2028l=ang0258B1", min_size=1, max_size=12)


@given(TAGS)
def test_a_tag_becomes_one_token_of_a_tag(tag: str) -> None:
    token = encode_tag(tag)
    assert is_tag(token)
    assert token.split() == [token]


@given(TAGS)
def test_the_token_of_a_tag_is_decoded_to_the_tag(tag: str) -> None:
    assert decode_tag(encode_tag(tag)) == tag
