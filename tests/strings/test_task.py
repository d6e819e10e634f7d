"""Queries become source tokens, and the tokens become the same query again."""

from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.strings.task import INFLECTION, Query
from onmt_entmax.strings.units import encode_word

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)  # any text may be a word
LANGUAGES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1)
# Tags may contain the separator of tags, the sign `+` with which their tokens begin, and spaces.
TAGS = st.lists(st.text("AV.;+ \u00a0\u2581/", min_size=1), min_size=1).map(tuple)


@given(WORDS, TAGS)
def test_language_tags_and_characters_share_no_token(lemma: str, tags: tuple[str, ...]) -> None:
    """The word ends with `+V` and `lang=v`, the tokens of the last tag and of the language."""
    word = f"{lemma}+Vlang=v"
    language, *rest = INFLECTION.encode_source(Query(word, (*tags, "V"), "v"))
    tag_tokens, characters = rest[: len(tags) + 1], rest[len(tags) + 1 :]
    assert characters == encode_word(word)
    assert language not in {*tag_tokens, *characters}
    assert set(tag_tokens).isdisjoint(characters)


@given(st.builds(Query, WORDS, TAGS, LANGUAGES))
def test_the_line_of_a_query_is_decoded_to_the_query(query: Query) -> None:
    line = " ".join(INFLECTION.encode_source(query))
    assert INFLECTION.decode_source(line.split(" ")) == query


def test_a_space_in_a_tag_becomes_the_sign_of_a_space() -> None:
    tokens = INFLECTION.encode_source(Query("altus", ("ADJ", "ABL", " PL"), "latin"))
    assert tokens[:4] == ["lang=latin", "+ADJ", "+ABL", "+▁PL"]
