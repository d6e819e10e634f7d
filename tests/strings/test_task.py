"""Sources as tokens and back, and the task that a model folder records."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.errors import UserError
from onmt_entmax.strings.task import (
    INFLECTION,
    Query,
    TaskError,
    language_of,
    recorded_task,
    split_tags,
)
from onmt_entmax.strings.units import CHARACTERS, Unit, encode_word

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
names = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1)
tags = st.lists(st.text("AV.;+ \u00a0\u2581/", min_size=1), min_size=1).map(tuple)


@given(words, tags)
def test_language_tags_and_characters_share_no_token(lemma: str, tags: tuple[str, ...]) -> None:
    tokens = INFLECTION.encode_source(Query(lemma, tags, "v"))
    characters = set(encode_word(lemma + "+V" + "lang=v"))
    assert not characters & set(tokens[: 1 + len(tags)])
    assert tokens[0] not in tokens[1:]


@given(st.builds(Query, words, tags, names))
def test_a_query_comes_back(query: Query) -> None:
    line = " ".join(INFLECTION.encode_source(query))
    assert INFLECTION.decode_source(line.split(" ")) == query


def test_tags_with_a_space() -> None:
    query = Query("altus", ("ADJ", "ABL", " PL"), "latin")
    tokens = INFLECTION.encode_source(query)
    assert tokens[:4] == ["lang=latin", "+ADJ", "+ABL", "+▁PL"]
    assert INFLECTION.decode_source(tokens) == query


@pytest.mark.parametrize("line", ["+V a", "lang=", ""])
def test_a_language_comes_first(line: str) -> None:
    with pytest.raises(UserError, match=r"file:3: expected a language first \(lang=\.\.\.\)"):
        language_of(Path("file"), 3, line)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("", []),
        ("V", ["V"]),
        ("V;PRS;NOM(3,SG)", ["V", "PRS", "NOM(3,SG)"]),
        ("N;NOM(PL;PSS(1;PL));X", ["N", "NOM(PL;PSS(1;PL))", "X"]),
        ("ADJ;(non)NOM;SG", ["ADJ", "(non)NOM", "SG"]),
        ("A(B(1);C);X", ["A(B(1);C)", "X"]),
        ("V);A", ["V)", "A"]),
    ],
)
def test_brackets_hold_a_tag_together(text: str, tags: list[str]) -> None:
    assert list(split_tags(text)) == tags


@given(st.text("AV;()", min_size=1))
def test_tags_that_were_split_are_split_so_again(text: str) -> None:
    tags = split_tags(text)
    assert ";".join(tags) == text
    assert tags == split_tags(";".join(tags))


# --- the task that a file records ------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param({"column": []}, "'column': no such key", id="unknown key"),
        pytest.param(
            {"columns": "source"}, "columns: must be a list", id="columns that are a text"
        ),
        pytest.param({"columns": ["source", 1]}, "columns: must be a list", id="a number"),
        pytest.param({"separators": ["-"]}, "separators: must map columns", id="a list"),
        pytest.param({"separators": {"language": "-"}}, "'language' is none of", id="language"),
        pytest.param({"separators": {"tags": 1}}, "tags: must be a text, not 1", id="no text"),
        pytest.param({"separators": {"target": "\t"}}, r"must be a text, not '\\t'", id="tab"),
        pytest.param({"separators": {"target": "\n"}}, r"must be a text, not '\\n'", id="line end"),
        pytest.param({"separators": {"tags": ""}}, "tags: must not be empty", id="empty for tags"),
        pytest.param(["source"], "task: must be a mapping", id="no mapping"),
    ],
)
def test_a_record_with_a_mistake_is_refused(content: object, message: str) -> None:
    if isinstance(content, dict):
        content = {"columns": ["source", "target", "tags"]} | content
    with pytest.raises(TaskError, match=message):
        recorded_task({"task": content}, languages=False)


def test_a_record_is_read() -> None:
    content = {"columns": ["source", "target"], "separators": {"target": " "}}
    task = recorded_task({"task": content}, languages=False)
    assert task.columns == ("source", "target")
    assert (task.source, task.target) == (CHARACTERS, Unit.between(" "))
