"""Queries become source tokens, and the tokens become the same query again."""

from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.strings.marks import encode_tag
from onmt_entmax.strings.task import INFLECTION, Query
from onmt_entmax.strings.units import encode_word

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)  # any text may be a word
LANGUAGES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1)
# Tags may contain the separator of tags, the sign `+` with which their tokens begin, and spaces.
TAGS = st.lists(st.text("AV.;+ \u00a0\u2581/", min_size=1), min_size=1).map(tuple)


@given(WORDS, TAGS)
def test_a_source_is_its_language_its_tags_and_its_characters(
    word: str, tags: tuple[str, ...]
) -> None:
    tokens = INFLECTION.encode_source(Query(word, tags, "latin"))
    assert tokens == ["lang=latin", *map(encode_tag, tags), *encode_word(word)]


@given(WORDS, TAGS)
def test_no_character_is_taken_for_a_language_or_a_tag(word: str, tags: tuple[str, ...]) -> None:
    """The word ends with `+V` and `lang=v`, the tokens of the last tag and of the language."""
    query = Query(f"{word}+Vlang=v", (*tags, "V"), "v")
    _, characters = INFLECTION.marks_and_units(INFLECTION.encode_source(query))
    assert characters == encode_word(query.source)


@given(st.builds(Query, WORDS, TAGS, LANGUAGES))
def test_the_line_of_a_query_is_decoded_to_the_query(query: Query) -> None:
    line = " ".join(INFLECTION.encode_source(query))
    assert INFLECTION.decode_source(line.split(" ")) == query


def test_a_space_in_a_tag_becomes_the_sign_of_a_space() -> None:
    tokens = INFLECTION.encode_source(Query("altus", ("ADJ", "ABL", " PL"), "latin"))
    assert tokens[:4] == ["lang=latin", "+ADJ", "+ABL", "+▁PL"]
