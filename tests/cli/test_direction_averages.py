"""Averages of models of both directions have the mean probability of each whole form."""

import math
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax import Inflector
from onmt_entmax.ensembles import TranslationError
from onmt_entmax.inflector import Inflection
from onmt_entmax.translator import Translator
from tests.cli.directions import RIGHT_TO_LEFT
from tests.inflection_models import write_model

# Three models are averaged with equal weights; two of them write from left to right.
LEFT_WEIGHT, RIGHT_WEIGHT = 2 / 3, 1 / 3

SEED = 14  # of weights that give a form and its reverse probabilities up to 0.01 apart
LONGEST = 4  # letters of a form: so few that a search finds all forms


class Average(NamedTuple):
    """The average of three models for a lemma, and what it is the average of.

    Attributes:
        result: the forms of the average.
        left: the forms of the two left-to-right models, averaged.
        mirror: the forms of the right-to-left model, each spelt backwards: those of a left-to-right
            model with the same weights.
    """

    result: Inflection
    left: Inflection
    mirror: Inflection

    def mean_probabilities(self) -> dict[str, float]:
        """Return the mean probability of each form."""
        probs: dict[str, float] = defaultdict(float)
        for form in self.left.forms:
            probs[form.text] += LEFT_WEIGHT * form.prob
        for form in self.mirror.forms:
            backwards = form.text[::-1]
            probs[backwards] += RIGHT_WEIGHT * form.prob
        return probs


@pytest.fixture(scope="module", params=["a", "bba"])
def average(
    request: pytest.FixtureRequest, left_to_right: Path, tmp_path_factory: pytest.TempPathFactory
) -> Average:
    """The average for a lemma; two of its models have the same weights, and write in opposite ways.

    A right-to-left model says in its options that its outputs are to be reversed.
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
        mirror=forms_of(forwards),
    )


def test_a_form_and_its_reverse_have_different_probabilities(average: Average) -> None:
    """A control: otherwise an average that forgets to reverse forms would seem right, too."""
    probs = {form.text: form.prob for form in average.mirror.forms}
    assert any(abs(prob - probs.get(text[::-1], 0.0)) > 1e-3 for text, prob in probs.items())


def test_a_form_has_the_mean_probability_of_both_directions(average: Average) -> None:
    probs = {form.text: form.prob for form in average.result.forms}
    assert probs == pytest.approx(average.mean_probabilities(), abs=1e-6)


def test_averaged_forms_are_sorted_by_probability(average: Average) -> None:
    probs = [form.prob for form in average.result.forms]
    assert len(probs) > 1
    assert probs == sorted(probs, reverse=True)


def excluded_bound(inflection: Inflection) -> float:
    """Return the largest probability of an output that the search excluded as malformed."""
    return math.exp(inflection.certificate.log_excluded_bound)


def test_the_excluded_bound_of_an_average_is_the_mean_of_both_directions(average: Average) -> None:
    """Spelt backwards, outputs have the same bound."""
    mean = LEFT_WEIGHT * excluded_bound(average.left) + RIGHT_WEIGHT * excluded_bound(
        average.mirror
    )
    assert excluded_bound(average.result) == pytest.approx(mean, rel=1e-5)


def test_token_level_ensembles_refuse_models_of_two_directions(
    left_to_right: Path, right_to_left: Path
) -> None:
    with pytest.raises(TranslationError, match="one writes from left to right, the other"):
        Translator.from_folders([left_to_right, right_to_left])
