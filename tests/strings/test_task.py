"""Sources as tokens and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.strings.marks import split_tags
from onmt_entmax.strings.task import INFLECTION, Query
from onmt_entmax.strings.units import encode_word

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1)
TAGS = st.lists(st.text("AV.;+ \u00a0\u2581/", min_size=1), min_size=1).map(tuple)


@given(WORDS, TAGS)
def test_language_tags_and_characters_share_no_token(lemma: str, tags: tuple[str, ...]) -> None:
    tokens = INFLECTION.encode_source(Query(lemma, tags, "v"))
    characters = set(encode_word(lemma + "+V" + "lang=v"))
    assert not characters & set(tokens[: 1 + len(tags)])
    assert tokens[0] not in tokens[1:]


@given(st.builds(Query, WORDS, TAGS, NAMES))
def test_a_query_comes_back(query: Query) -> None:
    line = " ".join(INFLECTION.encode_source(query))
    assert INFLECTION.decode_source(line.split(" ")) == query


def test_tags_with_a_space() -> None:
    query = Query("altus", ("ADJ", "ABL", " PL"), "latin")
    tokens = INFLECTION.encode_source(query)
    assert tokens[:4] == ["lang=latin", "+ADJ", "+ABL", "+▁PL"]
    assert INFLECTION.decode_source(tokens) == query


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
def test_tags_that_were_split_are_split_so_again(text: str) -> None:
    tags = split_tags(text)
    assert ";".join(tags) == text
    assert tags == split_tags(";".join(tags))
