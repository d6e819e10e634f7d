"""Likely mistakes that a comparison of dev and test rows with training rows shows."""

import pytest

from onmt_entmax.strings.split_checks import differences, new_combinations
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import Query, StringTask
from onmt_entmax.strings.units import Unit

# --- languages -------------------------------------------------------------------------------


def rows_in(*languages: str) -> list[Row]:
    """Return a row in each language; they differ in nothing else."""
    return [Row(1, Query("a", language=language), "b", ()) for language in languages]


def test_languages_that_one_split_alone_has_are_named() -> None:
    rows = {"train": rows_in("x", "y"), "dev": rows_in("x", "z"), "test": rows_in("y")}
    assert [*differences(rows, StringTask())] == [
        "dev: languages of the training rows that it lacks: y; they have no part in the choice of "
        "the checkpoint",
        "dev: languages that the training rows lack: z; these have x, y",
    ]


def test_without_training_rows_there_is_no_difference() -> None:
    assert [*differences({"dev": rows_in("x", "z")}, StringTask())] == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("deu", "german", id="a code and a name"),
        pytest.param("ger", "german", id="a code of ISO 639-2 and a name"),
        pytest.param("ENG", "eng", id="capitals"),
        pytest.param("Welsh", "cym", id="a name with a capital, and a code"),
    ],
)
def test_two_names_of_one_language_are_named(first: str, second: str) -> None:
    rows = rows_in(first, second)
    assert [*differences({"train": rows, "dev": rows}, StringTask())] == [
        f"{first} and {second} are different languages here; give them one name"
    ]


# --- tags ------------------------------------------------------------------------------------


def row_tagged(*tags: str) -> Row:
    """Return a row with these tags."""
    return Row(1, Query("a", tags), "b", ())


def test_tags_that_the_training_rows_lack_are_named() -> None:
    rows = {"train": [row_tagged("V", "PST")], "dev": [row_tagged("v", "PST")]}
    assert [*differences(rows, StringTask())] == ["dev: tags that the training rows lack: 'v'"]


def test_of_many_tags_that_the_training_rows_lack_five_are_named() -> None:
    rows = {"train": [row_tagged("g")], "dev": [row_tagged(*"abcdef")]}
    assert [*differences(rows, StringTask())] == [
        "dev: tags that the training rows lack: 'a', 'b', 'c', 'd', 'e', ..."
    ]


def test_another_order_of_tags_is_named() -> None:
    rows = {"train": [row_tagged("V", "PST")], "dev": [row_tagged("PST", "V")]}
    assert [*differences(rows, StringTask())] == [
        "dev: tags in another order than in the training rows, which is another query: 1 of 1, "
        "such as 'PST;V' for 'V;PST'"
    ]


def test_of_several_trained_orders_of_tags_the_last_is_named() -> None:
    rows = {
        "train": [row_tagged("A", "B", "C"), row_tagged("A", "C", "B")],
        "dev": [row_tagged("C", "B", "A")],
    }
    (sentence,) = differences(rows, StringTask())
    assert sentence.endswith("such as 'C;B;A' for 'A;C;B'")


@pytest.mark.parametrize(
    ("tags", "note"),
    [
        pytest.param(
            ("N", "PST"),
            "rows with a combination of tags that no training row has: 1 of 1, such as 'N;PST'",
            id="known tags, never together",
        ),
        pytest.param(("PST", "V"), "", id="another order"),
        pytest.param(("V", "FUT"), "", id="a new tag"),
    ],
)
def test_a_note_counts_combinations_of_tags_that_the_training_rows_lack(
    tags: tuple[str, ...], note: str
) -> None:
    trained = [row_tagged("V", "PST"), row_tagged("N", "SG")]
    assert new_combinations([row_tagged(*tags)], trained) == note


# --- symbols ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target", "columns"),
    [
        pytest.param("haʊs", "h a ʊ s", [], id="symbols of training"),
        pytest.param("haʊs", "haʊs", ["targets"], id="targets without spaces between phones"),
        pytest.param("hx", "h a", [], id="half of the source is new"),
        pytest.param("дом", "d o m", ["sources", "targets"], id="another alphabet"),
    ],
)
def test_columns_are_named_most_of_whose_symbols_are_new(
    source: str, target: str, columns: list[str]
) -> None:
    rows = {
        "train": [Row(1, Query("haʊs"), "h a ʊ s", ())],
        "dev": [Row(1, Query(source), target, ())],
    }
    sentences = [*differences(rows, StringTask(target=Unit.between(" ")))]
    for column, sentence in zip(columns, sentences, strict=True):
        assert f"symbols of its {column} are none of the training {column}, such as" in sentence
