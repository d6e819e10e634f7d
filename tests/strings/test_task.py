"""Sources as tokens and back."""

from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.strings.task import INFLECTION, Query
from onmt_entmax.strings.units import encode_word

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1)
TAGS = st.lists(st.text("AV.;+ \u00a0\u2581/", min_size=1), min_size=1).map(tuple)


@given(WORDS, TAGS)
def test_language_tags_and_characters_share_no_token(lemma: str, tags: tuple[str, ...]) -> None:
    """Also if the characters are those of marks."""
    language, *rest = INFLECTION.encode_source(Query(lemma, tags, "v"))
    tag_tokens = rest[: len(tags)]
    characters = encode_word(f"{lemma}+Vlang=v")
    assert {language}.isdisjoint([*tag_tokens, *characters])
    assert set(tag_tokens).isdisjoint(characters)


@given(st.builds(Query, WORDS, TAGS, NAMES))
def test_a_query_comes_back(query: Query) -> None:
    line = " ".join(INFLECTION.encode_source(query))
    assert INFLECTION.decode_source(line.split(" ")) == query


def test_tags_with_a_space() -> None:
    query = Query("altus", ("ADJ", "ABL", " PL"), "latin")
    tokens = INFLECTION.encode_source(query)
    assert tokens[:4] == ["lang=latin", "+ADJ", "+ABL", "+▁PL"]
    assert INFLECTION.decode_source(tokens) == query
