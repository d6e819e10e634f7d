"""`Transducer`: queries, targets and sizes that it refuses, and languages by name or code."""

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
    ("query", "message"),
    [
        pytest.param(Query(""), "the source is empty", id="no source"),
        pytest.param(
            Query("ab", tags=("V", "PST")),
            "the query has tags, and the model reads none",
            id="tags",
        ),
        pytest.param(
            Query("ab", language="german"), "'german' is the language of a query", id="a language"
        ),
    ],
)
def test_a_query_that_does_not_fit_the_task_is_refused(
    model: Path, query: Query, message: str
) -> None:
    """The task of the model has neither tags nor languages."""
    with pytest.raises(TransducerError, match=message):
        Transducer(model).predict(query.source, query.tags, query.language)


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

    def test_that_have_tags_give_a_warning_without_them(self, transducer: Transducer) -> None:
        warnings = transducer.predict("ab", "", "german").warnings
        assert warnings == ("no tags, although training had some",)

    def test_that_have_tags_give_no_warning_with_them(self, transducer: Transducer) -> None:
        assert transducer.predict("ab", "V", "german").warnings == ()


def test_a_target_with_an_empty_symbol_is_refused(model: Path) -> None:
    with pytest.raises(TransducerError, match="the target has an empty symbol"):
        Transducer(model).score("ab", "p  a")


@pytest.mark.parametrize(
    ("sizes", "refused"),
    [
        pytest.param({"beam_size": 0}, "beam_size", id="no beam"),
        pytest.param({"beam_size": 0, "n_best": 3}, "beam_size", id="no beam for three outputs"),
        pytest.param({"n_best": -1}, "n_best", id="fewer than no outputs"),
    ],
)
def test_a_size_out_of_range_is_refused(
    model: Path, sizes: dict[str, object], refused: str
) -> None:
    with pytest.raises(ValueError, match=f"{refused}.*must be"):
        Transducer(model, **sizes)
