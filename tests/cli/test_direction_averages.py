"""Averages of models of both directions have the mean probability of each whole form."""

import math
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax import Inflector
from onmt_entmax.ensembles import TranslationError
from onmt_entmax.inflector import Inflection
from onmt_entmax.translator import Translator
from tests.cli.directions import RIGHT_TO_LEFT
from tests.inflection_models import write_model

# Weights of the directions: of three equal models, two write from left to right.
LEFT_WEIGHT, RIGHT_WEIGHT = 2 / 3, 1 / 3

SEED = 14  # of weights that give a form and its reverse probabilities up to 0.01 apart
LONGEST = 4  # letters of a form, so that there are few


class Average(NamedTuple):
    """The average of three models, and its parts by direction."""

    result: Inflection
    """The forms of the average."""
    left: Inflection
    """The forms of both left-to-right models together."""
    unreversed: Inflection
    """The forms of the right-to-left model from back to front, as it writes them."""

    def mean_probabilities(self) -> dict[str, float]:
        """Return the mean probability of each form of the parts."""
        probs = {form.text: LEFT_WEIGHT * form.prob for form in self.left.forms}
        for form in self.unreversed.forms:
            text = form.text[::-1]
            probs[text] = probs.get(text, 0.0) + RIGHT_WEIGHT * form.prob
        return probs


@pytest.fixture(scope="module", params=["a", "bba"])
def average(
    request: pytest.FixtureRequest, left_to_right: Path, tmp_path_factory: pytest.TempPathFactory
) -> Average:
    """The average for a lemma.

    Two networks have equal weights, and the options of one say that it writes from right to left:
    the other one writes its forms unreversed.
    """
    folder = tmp_path_factory.mktemp("models")
    forwards = write_model(folder / "forwards", SEED)
    backwards = write_model(folder / "backwards", SEED, options=RIGHT_TO_LEFT)

    def forms_of(*models: Path) -> Inflection:
        """Return all forms of the lemma by an average of models."""
        inflector = Inflector(models, n_best=0, max_length=LONGEST)
        return inflector.inflect("english", request.param, "V")

    return Average(
        result=forms_of(left_to_right, backwards, forwards),
        left=forms_of(left_to_right, forwards),
        unreversed=forms_of(forwards),
    )


def test_a_form_and_its_reverse_have_different_probabilities(average: Average) -> None:
    """A control: otherwise an average that forgets to reverse forms would seem right, too."""
    probs = {form.text: form.prob for form in average.unreversed.forms}
    assert any(abs(prob - probs.get(text[::-1], 0.0)) > 1e-3 for text, prob in probs.items())


def test_a_form_has_the_mean_probability_of_both_directions(average: Average) -> None:
    probs = {form.text: form.prob for form in average.result.forms}
    assert probs == pytest.approx(average.mean_probabilities(), abs=1e-6)


def test_averaged_forms_are_sorted_by_probability(average: Average) -> None:
    probs = [form.prob for form in average.result.forms]
    assert len(probs) > 1
    assert probs == sorted(probs, reverse=True)


def test_the_excluded_bound_of_an_average_is_the_mean_of_both_directions(average: Average) -> None:
    # The bound of the right-to-left model is that of the same network, unreversed.
    result, left, right = (
        math.exp(inflection.certificate.log_excluded_bound) for inflection in average
    )
    assert result == pytest.approx(LEFT_WEIGHT * left + RIGHT_WEIGHT * right, rel=1e-5)


def test_token_level_ensembles_refuse_models_of_two_directions(
    left_to_right: Path, right_to_left: Path
) -> None:
    with pytest.raises(TranslationError, match="one writes from left to right, the other"):
        Translator.from_folders([left_to_right, right_to_left])
