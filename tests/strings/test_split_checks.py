"""Likely mistakes that a comparison of dev and test rows with training rows shows."""

import pytest

from onmt_entmax.strings.split_checks import differences
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import Query, StringTask
from onmt_entmax.strings.units import Unit


def rows_of(languages: str = "", tags: str = "") -> list[Row]:
    """Return a row for each language, between spaces, with the same tags."""
    split = tuple(tags.split(";")) if tags else ()
    return [Row(1, Query("a", split, language), "b", ()) for language in languages.split(" ")]


def test_languages_that_one_split_alone_has_are_named() -> None:
    rows = {"train": rows_of("x y"), "dev": rows_of("x z"), "test": rows_of("y")}
    assert [*differences(rows, StringTask())] == [
        "dev: languages of the training rows that it lacks: y; they have no part in the choice of "
        "the checkpoint",
        "dev: languages that the training rows lack: z; these have x, y",
    ]


def test_without_training_rows_there_is_no_difference() -> None:
    assert [*differences({"dev": rows_of("x z")}, StringTask())] == []


@pytest.mark.parametrize("names", ["deu german", "ger german", "ENG eng", "Welsh cym"])
def test_two_names_of_one_language_are_named(names: str) -> None:
    first, second = sorted(names.split())
    rows = {"train": rows_of(names), "dev": rows_of(names)}
    assert [*differences(rows, StringTask())] == [
        f"{first} and {second} are different languages here; give them one name"
    ]


def test_tags_that_the_training_rows_lack_are_named() -> None:
    rows = {"train": rows_of(tags="V;PST"), "dev": rows_of(tags="v;PST")}
    assert [*differences(rows, StringTask())] == ["dev: tags that the training rows lack: 'v'"]


def test_another_order_of_tags_is_named() -> None:
    rows = {"train": rows_of(tags="V;PST"), "dev": rows_of(tags="PST;V")}
    assert [*differences(rows, StringTask())] == [
        "dev: tags in another order than in the training rows, which is another query: 1 of 1, "
        "such as 'PST;V' for 'V;PST'"
    ]


@pytest.mark.parametrize(
    ("source", "target", "named"),
    [
        pytest.param("haʊs", "h a ʊ s", [], id="like those of training"),
        pytest.param("haʊs", "haʊs", ["targets"], id="divided otherwise"),
        pytest.param("h a", "xy", ["targets"], id="of two sources' symbols one is new"),
        pytest.param("дом", "d o m", ["sources", "targets"], id="both new"),
    ],
)
def test_symbols_that_training_lacks_are_named(source: str, target: str, named: list[str]) -> None:
    task = StringTask(target=Unit.between(" "))
    rows = {
        "train": [Row(1, Query("haʊs"), "h a ʊ s", ())],
        "dev": [Row(1, Query(source), target, ())],
    }
    sentences = [*differences(rows, task)]
    assert len(sentences) == len(named)
    for column, sentence in zip(named, sentences, strict=True):
        assert f"symbols of its {column} are none of the training {column}, such as" in sentence
