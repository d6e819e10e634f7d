"""`Transducer`: predictions and scores of a model of strings."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax import Query, Transducer
from onmt_entmax.prediction import Prediction
from onmt_entmax.proven_outputs import Output
from onmt_entmax.strings.task import TRANSLATION
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.string_models import UNKNOWN, all_texts, write_phones

LONGEST = 3  # phones of a text, so that all can be listed


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_phones(tmp_path_factory.mktemp("phones") / "model", 3)


class TestAllOutputs:
    """A search that may list every output of up to `LONGEST` phones."""

    @pytest.fixture(scope="class")
    def transducer(self, model: Path) -> Transducer:
        return Transducer(model, n_best=0, beam_size=200, max_length=LONGEST)

    @pytest.fixture(scope="class")
    def outputs(self, transducer: Transducer) -> Sequence[Output]:
        outputs = transducer.predict("abd").outputs
        assert outputs
        return outputs

    def test_are_the_texts_with_a_probability(
        self, transducer: Transducer, outputs: Sequence[Output]
    ) -> None:
        scores = {text: transducer.score("abd", text) for text in all_texts(LONGEST)}
        expected = {text: score for text, score in scores.items() if score > -math.inf}
        assert len(expected) > 5  # of 85 texts; the sparse model excludes the others
        listed = {output.text: output.log_prob for output in outputs if UNKNOWN not in output.text}
        assert listed == pytest.approx(expected, abs=1e-5)

    def test_have_no_probability_above_1(self, outputs: Sequence[Output]) -> None:
        assert max(output.log_prob for output in outputs) <= 0


def test_a_target_with_an_unknown_symbol_has_no_probability(model: Path) -> None:
    assert Transducer(model).score("ab", "ʘ") == -math.inf


def test_many_queries_are_predicted_as_each_alone(model: Path) -> None:
    transducer = Transducer(model)
    queries = [Query("ab"), Query("a"), Query("cab"), Query("bb"), Query("c")]
    predictions = list(transducer.predictions(iter(queries), batch_size=2))
    assert [prediction.query for prediction in predictions] == queries
    expected = [transducer.predict(query.source).text for query in queries]
    assert [prediction.text for prediction in predictions] == expected


class TestARightToLeftModel:
    """A model of the same weights that writes the last phone of a text first."""

    @pytest.fixture
    def left_to_right(self, tmp_path: Path) -> Transducer:
        return Transducer(write_phones(tmp_path / "left", 3, end=1), n_best=5)

    @pytest.fixture
    def right_to_left(self, tmp_path: Path) -> Transducer:
        model = write_phones(tmp_path / "right", 3, end=1, target_order="right_to_left")
        return Transducer(model, n_best=5)

    def test_writes_the_same_texts_reversed(
        self, left_to_right: Transducer, right_to_left: Transducer
    ) -> None:
        texts, reversed_texts = (
            [output.text for output in transducer.predict("ab").outputs]
            for transducer in (left_to_right, right_to_left)
        )
        assert len(texts) == 5
        assert texts == [" ".join(text.split(" ")[::-1]) for text in reversed_texts]

    def test_scores_a_reversed_text_alike(
        self, left_to_right: Transducer, right_to_left: Transducer
    ) -> None:
        texts = [output.text for output in left_to_right.predict("ab").outputs]
        phones = max((text.split(" ") for text in texts), key=len)
        assert len(phones) > 1
        score = left_to_right.score("ab", " ".join(phones))
        assert right_to_left.score("ab", " ".join(phones[::-1])) == pytest.approx(score)


class TestAPredictionWithoutOutput:
    """No output of the model ends."""

    @pytest.fixture
    def prediction(self, tmp_path: Path) -> Prediction:
        endless = write_phones(tmp_path / "endless", 1, end=-100)
        return Transducer(endless, max_length=3).predict("ab<")

    def test_is_json(self, prediction: Prediction) -> None:
        """Strict JSON, which has no infinity."""
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
        vocabularies = vocabularies_of(("ein", "Haus"), ("a", "house"))
        folder = write_model(tmp_path / "model", 3, vocabularies)
        return Transducer(folder, n_best=0, beam_size=50, max_length=2)

    def test_are_the_units_of_translation(self, transducer: Transducer) -> None:
        assert transducer.task == TRANSLATION

    def test_are_those_of_the_vocabulary(self, transducer: Transducer) -> None:
        texts = {output.text for output in transducer.predict("ein Haus").outputs}
        assert len(texts) > 1
        assert {word for text in texts for word in text.split()} <= {"a", "house", "<unk>"}

    def test_may_have_any_white_space_between_them(self, transducer: Transducer) -> None:
        assert transducer.predict(" ein  Haus ").text == transducer.predict("ein Haus").text

    def test_are_scored_as_they_are_predicted(self, transducer: Transducer) -> None:
        best = transducer.predict("ein Haus").outputs[0]
        assert transducer.score("ein Haus", best.text) == pytest.approx(best.log_prob)
