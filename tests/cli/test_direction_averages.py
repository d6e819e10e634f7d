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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


def test_models_of_two_directions_are_no_token_level_ensemble(
    left_to_right: Path, right_to_left: Path
) -> None:
    with pytest.raises(TranslationError, match="one writes from left to right, the other"):
        Translator.from_folders([left_to_right, right_to_left])


# Of three models with equal weights, two write from left to right.
LEFT_WEIGHT, RIGHT_WEIGHT = 2 / 3, 1 / 3


class Mean(NamedTuple):
    """The forms of an average of three models, and of its models of each direction."""

    answer: Inflection
    left: Inflection
    """Of the ensemble of both left-to-right models."""
    right: Inflection
    """Of the right-to-left model, its forms still reversed."""


@pytest.fixture(scope="module", params=["a", "bba"])
def mean(request: pytest.FixtureRequest, left_to_right: Path, folder: Path) -> Mean:
    """An average in which all forms of each direction are known.

    The right-to-left model has the weights of one of the others: its forms are theirs, reversed.
    """
    query = ("english", request.param, "V")
    forwards = write_model(folder / f"forwards {request.param}", 24)
    backwards = write_model(folder / f"backwards {request.param}", 24, options=RIGHT_TO_LEFT)

    def inflected(*models: Path) -> Inflection:
        return Inflector(models, n_best=0, max_length=6).inflect(*query)

    return Mean(
        answer=inflected(left_to_right, backwards, forwards),
        left=inflected(left_to_right, forwards),
        right=inflected(forwards),
    )


def test_models_of_two_directions_are_averaged_by_whole_forms(mean: Mean) -> None:
    expected = {form.text: LEFT_WEIGHT * form.prob for form in mean.left.forms}
    for form in mean.right.forms:
        text = form.text[::-1]
        expected[text] = expected.get(text, 0.0) + RIGHT_WEIGHT * form.prob
    forms = {form.text: form.prob for form in mean.answer.forms}
    assert forms == pytest.approx(expected, abs=1e-6)


def test_averaged_forms_are_sorted_by_probability(mean: Mean) -> None:
    probs = [form.prob for form in mean.answer.forms]
    assert probs == sorted(probs, reverse=True)


def test_the_excluded_bound_of_an_average_is_the_mean(mean: Mean) -> None:
    left, right = (
        math.exp(inflection.certificate.log_excluded_bound)
        for inflection in (mean.left, mean.right)
    )
    bound = math.exp(mean.answer.certificate.log_excluded_bound)
    assert bound == pytest.approx(LEFT_WEIGHT * left + RIGHT_WEIGHT * right, rel=1e-5)
