"""`split_tags` divides the tags of a table's cell at `;`, except within brackets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.strings.marks import split_tags


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
