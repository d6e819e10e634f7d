"""`Transducer`: predictions and scores of models of strings, compared with enumeration."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest

from onmt_entmax import Query, Transducer
from onmt_entmax.strings.task import TRANSLATION
from onmt_entmax.transducer import Prediction, TransducerError
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.string_models import LETTERS, PHONES, UNKNOWN, task_options, write_phones

LONGEST = 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_phones(tmp_path_factory.mktemp("phones") / "model", 3)


def all_texts(longest: int = LONGEST) -> list[str]:
    """Return all texts of so many phones, or fewer, with spaces between them."""
    return [
        " ".join(phones)
        for length in range(longest + 1)
        for phones in itertools.product(PHONES, repeat=length)
    ]


# --- one model -------------------------------------------------------------------------------


def test_an_exhaustive_prediction_lists_every_text_of_positive_probability(model: Path) -> None:
    transducer = Transducer(model, n_best=0, beam_size=200, max_length=LONGEST)
    scores = {text: transducer.score("abd", text) for text in all_texts()}
    expected = {text: score for text, score in scores.items() if score > -math.inf}
    assert len(expected) > 5
    outputs = transducer.predict("abd").outputs
    listed = {output.text: output.log_prob for output in outputs if UNKNOWN not in output.text}
    assert listed == pytest.approx(expected, abs=1e-5)


def test_no_output_is_more_probable_than_1(model: Path) -> None:
    outputs = Transducer(model, n_best=0, beam_size=200, max_length=LONGEST).predict("abd").outputs
    assert all(output.log_prob <= 0 for output in outputs)


def test_an_impossible_target_has_no_probability(model: Path) -> None:
    assert Transducer(model).score("ab", "ʘ") == -math.inf


def test_many_queries_are_predicted_like_each(model: Path) -> None:
    transducer = Transducer(model)
    queries = [Query("".join(letters)) for letters in itertools.product("abc", repeat=2)]
    predictions = list(transducer.predictions(iter(queries), batch_size=4))
    assert [prediction.query for prediction in predictions] == queries
    expected = [transducer.predict(query.source).text for query in queries]
    assert [prediction.text for prediction in predictions] == expected


def test_a_right_to_left_model_writes_the_same_text(tmp_path: Path) -> None:
    """A network's first token is the last of the text."""
    left, right = (
        Transducer(write_phones(tmp_path / order, 3, end=1, target_order=order), n_best=5)
        for order in ("left_to_right", "right_to_left")
    )
    for one, other in zip(left.predict("ab").outputs, right.predict("ab").outputs, strict=True):
        assert one.text.split(" ") == other.text.split(" ")[::-1]
        assert left.score("ab", one.text) == pytest.approx(right.score("ab", other.text))


class TestAPredictionWithoutOutput:
    """The model never ends."""

    @pytest.fixture
    def prediction(self, tmp_path: Path) -> Prediction:
        endless = write_phones(tmp_path / "endless", 1, end=-100)
        return Transducer(endless, max_length=3).predict("ab<")

    def test_is_json(self, prediction: Prediction) -> None:
        """JSON has no infinity."""
        content = json.loads(json.dumps(prediction.to_dict(), allow_nan=False))
        assert content["outputs"] == []
        assert content["source"] == "ab<"
        assert content["certificate"] == "none"
        assert "no output ended within the length limit" in content["warnings"]

    def test_is_a_table_for_notebooks(self, prediction: Prediction) -> None:
        assert "ab&lt;" in prediction._repr_html_()


class TestWords:
    """A model of texts reads and writes words between white space."""

    @pytest.fixture
    def transducer(self, tmp_path: Path) -> Transducer:
        folder = write_model(tmp_path / "m", 3, vocabularies_of(("ein", "Haus"), ("a", "house")))
        return Transducer(folder, n_best=0, beam_size=50, max_length=2)

    def test_are_the_units_of_translation(self, transducer: Transducer) -> None:
        assert transducer.task == TRANSLATION

    def test_make_texts(self, transducer: Transducer) -> None:
        texts = {output.text for output in transducer.predict("ein Haus").outputs}
        assert len(texts) > 1
        assert {word for text in texts for word in text.split()} <= {"a", "house", "<unk>"}

    def test_may_have_any_white_space_between_them(self, transducer: Transducer) -> None:
        assert transducer.predict(" ein  Haus ").text == transducer.predict("ein Haus").text

    def test_are_scored_as_they_are_predicted(self, transducer: Transducer) -> None:
        best = transducer.predict("ein Haus").outputs[0]
        assert transducer.score("ein Haus", best.text) == pytest.approx(best.log_prob)


# --- several models --------------------------------------------------------------------------


def test_a_score_of_models_with_the_same_vocabularies_is_that_of_the_prediction(
    model: Path, tmp_path: Path
) -> None:
    """They are averaged token by token."""
    others = [write_phones(tmp_path / str(seed), seed) for seed in (4, 5)]
    ensemble = Transducer([model, *others])
    best = ensemble.predict("abd").outputs[0]
    assert math.exp(ensemble.score("abd", best.text)) == pytest.approx(best.prob, abs=1e-6)


def test_a_score_of_both_directions_is_the_mean_of_probabilities(
    model: Path, tmp_path: Path
) -> None:
    """The two models of one direction count twice as much as the one of the other."""
    right_to_left = write_phones(tmp_path / "other", 4, target_order="right_to_left")
    third = write_phones(tmp_path / "third", 5)
    all_three = Transducer([model, right_to_left, third])
    forward, backward = Transducer([model, third]), Transducer(right_to_left)

    def prob(transducer: Transducer, text: str) -> float:
        return math.exp(transducer.score("abd", text))

    for text in all_texts(longest=2):
        expected = (2 * prob(forward, text) + prob(backward, text)) / 3
        assert prob(all_three, text) == pytest.approx(expected, abs=1e-9)


def test_models_of_other_symbols_are_averaged_by_whole_texts(model: Path, tmp_path: Path) -> None:
    """The other model can write x, too."""
    options = task_options(separators={"target": " "})
    other = write_model(tmp_path / "other", 4, vocabularies_of(LETTERS, (*PHONES, "x")), 2, options)
    both = Transducer([model, other], n_best=3, beam_size=50, max_length=2)
    for output in both.predict("abd").outputs:
        if UNKNOWN not in output.text:
            score = both.score("abd", output.text)
            assert math.log(output.prob) == pytest.approx(score, abs=1e-5)


def test_models_of_different_tasks_are_refused(model: Path, tmp_path: Path) -> None:
    characters = write_model(tmp_path / "m", 3, vocabularies_of(LETTERS, "ab"), 2, task_options())
    with pytest.raises(TransducerError, match=r"different tasks; target: symbols between ' '"):
        Transducer([model, characters])


# --- what is refused -------------------------------------------------------------------------


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
