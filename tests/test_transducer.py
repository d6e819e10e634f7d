"""`Transducer`: predictions and scores of a model of strings, compared with enumeration."""

import itertools
import json
import math
from pathlib import Path

import pytest

from onmt_entmax import Query, Transducer
from onmt_entmax.prediction import Prediction
from onmt_entmax.strings.task import TRANSLATION
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.string_models import UNKNOWN, all_texts, write_phones

LONGEST = 3  # phones of a text, so that all can be listed


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_phones(tmp_path_factory.mktemp("phones") / "model", 3)


def test_an_exhaustive_prediction_lists_every_text_of_positive_probability(model: Path) -> None:
    transducer = Transducer(model, n_best=0, beam_size=200, max_length=LONGEST)
    scores = {text: transducer.score("abd", text) for text in all_texts(LONGEST)}
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
