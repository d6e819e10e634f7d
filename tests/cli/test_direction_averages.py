"""Averages of models of both directions: probabilities of whole forms, and what certificates count.

Each is compared with the models of one direction alone.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax import Inflector
from onmt_entmax.ensembles import TranslationError
from onmt_entmax.inflector import Inflection
from onmt_entmax.search.certificate import Certificate
from onmt_entmax.translator import Translator
from tests.cli.directions import QUESTIONS, RIGHT_TO_LEFT
from tests.inflection_models import write_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def left_to_right(folder: Path) -> Path:
    """A model whose forms are no palindromes."""
    return write_model(folder / "left-to-right", 5, end=1)


@pytest.fixture(scope="module")
def right_to_left(folder: Path) -> Path:
    """The same weights; the folder says that they write from right to left."""
    return write_model(folder / "right-to-left", 5, end=1, options=RIGHT_TO_LEFT)


@pytest.fixture(scope="module")
def second_model(folder: Path) -> Path:
    """Another model that writes from left to right."""
    return write_model(folder / "second", 7, end=1)


def test_models_of_two_directions_are_no_token_level_ensemble(
    left_to_right: Path, right_to_left: Path
) -> None:
    with pytest.raises(TranslationError, match="one writes from left to right, the other"):
        Translator.from_folders([left_to_right, right_to_left])


# --- the forms of an average ---


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


# --- what its certificate counts ---


class Proofs(NamedTuple):
    """The certificate of an average of both directions, and those of its models alone."""

    both: Certificate
    left: Certificate
    right: Certificate


def compared_proofs(left: Path, right: Path, beam_size: int, max_length: int) -> list[Proofs]:
    """Return the certificates of all questions, as many forms of each as the beam is wide."""
    sizes = {"n_best": beam_size, "beam_size": beam_size, "max_length": max_length}
    certificates = [
        [answer.certificate for answer in Inflector(folders, **sizes).answers(QUESTIONS)]
        for folders in ([left, right], [left], [right])
    ]
    return [Proofs(*proofs) for proofs in zip(*certificates, strict=True)]


def both_drop_prefixes(proofs: Proofs) -> bool:
    return bool(proofs.left.dropped and proofs.right.dropped)


def some_prefix_is_cut(proofs: Proofs) -> bool:
    return bool(proofs.left.truncated or proofs.right.truncated)


def one_is_strict(proofs: Proofs) -> bool:
    return proofs.left.strict != proofs.right.strict


class Setting(NamedTuple):
    """Searches of a left-to-right model and of the right-to-left one, and what they reach."""

    left_model: str
    """Name of a fixture."""
    beam_size: int
    max_length: int
    reached: Callable[[Proofs], bool]


@pytest.fixture(scope="module")
def certain_model(folder: Path) -> Path:
    """A left-to-right model of so few forms that a wide search is strictly exhaustive."""
    return write_model(folder / "certain", 3, end=4)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(Setting("second_model", 1, 8, both_drop_prefixes), id="narrow beam"),
        pytest.param(Setting("second_model", 20, 2, some_prefix_is_cut), id="length limit"),
        pytest.param(Setting("certain_model", 20, 8, one_is_strict), id="one strict direction"),
    ],
)
def setting(request: pytest.FixtureRequest) -> Setting:
    setting: Setting = request.param
    return setting


@pytest.fixture(scope="module")
def proofs(setting: Setting, right_to_left: Path, request: pytest.FixtureRequest) -> list[Proofs]:
    left = request.getfixturevalue(setting.left_model)
    return compared_proofs(left, right_to_left, setting.beam_size, setting.max_length)


def test_each_setting_reaches_what_it_is_for(setting: Setting, proofs: list[Proofs]) -> None:
    assert any(map(setting.reached, proofs))


def test_dropped_prefixes_of_both_directions_count(proofs: list[Proofs]) -> None:
    for both, left, right in proofs:
        assert both.dropped == left.dropped + right.dropped


def test_truncated_prefixes_of_both_directions_count(proofs: list[Proofs]) -> None:
    for both, left, right in proofs:
        assert both.truncated == left.truncated + right.truncated


def test_an_average_is_strictly_exhaustive_if_both_directions_are(proofs: list[Proofs]) -> None:
    for both, left, right in proofs:
        assert both.strict == (left.strict and right.strict)


# --- the bound of an average ---


@pytest.fixture(
    params=[pytest.param(40, id="few forms"), pytest.param(50, id="many forms")],
)
def greedy_proofs(request: pytest.FixtureRequest, tmp_path: Path) -> list[Proofs]:
    """Certificates of searches that follow one prefix of each direction, of random models."""
    seed = request.param
    left = write_model(tmp_path / "left", seed, end=3)
    right = write_model(tmp_path / "right", seed + 14, end=3, options=RIGHT_TO_LEFT)
    return compared_proofs(left, right, beam_size=1, max_length=8)


def limit(proof: Certificate) -> float:
    """Return the log of the larger of what a search excluded and what it did not follow."""
    return max(proof.log_excluded_bound, proof.log_bound)


def test_the_excluded_bound_is_the_mean_of_the_limits_of_the_directions(
    greedy_proofs: list[Proofs],
) -> None:
    for both, left, right in greedy_proofs:
        mean = (math.exp(limit(left)) + math.exp(limit(right))) / 2
        assert math.exp(both.log_excluded_bound) == pytest.approx(mean, rel=1e-6)


def test_some_search_did_not_follow_more_than_it_excluded(greedy_proofs: list[Proofs]) -> None:
    parts = [proof for _, left, right in greedy_proofs for proof in (left, right)]
    assert any(proof.log_bound > proof.log_excluded_bound for proof in parts)
