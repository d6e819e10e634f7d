"""`Transducer`: queries that do not fit its task, and languages by name or code."""

from pathlib import Path
from typing import Any

import pytest

from onmt_entmax import Query, Transducer
from onmt_entmax.transducer import TransducerError
from tests.inflection_models import write_model
from tests.string_models import write_phones


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_phones(tmp_path_factory.mktemp("phones") / "model", 3)


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        ("", {}, "the source is empty"),
        ("ab", {"tags": "V;PST"}, "the query has tags, and the model reads none"),
        ("ab", {"language": "german"}, "'german' is the language of a query"),
    ],
    ids=["no source", "tags", "a language"],
)
def test_a_query_that_does_not_fit_the_task_is_refused(
    model: Path, source: str, more: dict[str, object], message: str
) -> None:
    """The task of the model has neither tags nor languages."""
    with pytest.raises(TransducerError, match=message):
        Transducer(model).predict(source, **more)


def test_a_wrong_query_among_many_is_named(model: Path) -> None:
    with pytest.raises(TransducerError, match="query 2: the source is empty"):
        list(Transducer(model).predictions([Query("a"), Query("")]))


def test_several_sources_are_not_taken_for_one(model: Path) -> None:
    several: Any = ["a", "b"]
    with pytest.raises(TypeError, match="the source is a list, not a string; several go to"):
        Transducer(model).predict(several)


class TestLanguages:
    @pytest.fixture
    def transducer(self, tmp_path: Path) -> Transducer:
        return Transducer(write_model(tmp_path / "model", 22))

    def test_are_known_by_their_code(self, transducer: Transducer) -> None:
        assert transducer.predict("ab", "V", "deu").query == Query("ab", ("V",), "german")

    def test_that_are_misspelt_are_named(self, transducer: Transducer) -> None:
        with pytest.raises(TransducerError, match="no language 'germn'; did you mean 'german'"):
            transducer.predict("ab", "V", "germn")

    def test_are_required(self, transducer: Transducer) -> None:
        with pytest.raises(TransducerError, match="no language is named"):
            transducer.predict("ab", "V")

    def test_that_have_tags_are_warned_of_without(self, transducer: Transducer) -> None:
        assert transducer.predict("ab", "", "german").warnings == (
            "no tags, although training had some",
        )
        assert transducer.predict("ab", "V", "german").warnings == ()


def test_a_target_with_an_empty_symbol_is_refused(model: Path) -> None:
    with pytest.raises(TransducerError, match="the target has an empty symbol"):
        Transducer(model).score("ab", "p  a")


@pytest.mark.parametrize(
    ("sizes", "refused"),
    [
        ({"beam_size": 0}, "beam_size"),
        ({"beam_size": 0, "n_best": 3}, "beam_size"),
        ({"n_best": -1}, "n_best"),
    ],
)
def test_a_size_out_of_range_is_refused(
    model: Path, sizes: dict[str, object], refused: str
) -> None:
    with pytest.raises(ValueError, match=f"{refused}.*must be"):
        Transducer(model, **sizes)
