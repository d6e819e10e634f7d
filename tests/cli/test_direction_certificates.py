"""Certificates of averages of both directions, compared with those of the models alone."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax import Inflector
from onmt_entmax.search.certificate import Certificate
from tests.cli.directions import QUESTIONS, RIGHT_TO_LEFT
from tests.inflection_models import write_model

# --- what it counts ---


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
    """A left-to-right model, how it and a right-to-left one are searched, and what that reaches."""

    seed: int
    end: float
    """What makes its forms short; see `write_model`."""
    beam_size: int
    max_length: int
    is_reached: Callable[[Proofs], bool]


SETTINGS = {
    "narrow beam": Setting(seed=7, end=1, beam_size=1, max_length=8, is_reached=both_drop_prefixes),
    "length limit": Setting(
        seed=7, end=1, beam_size=20, max_length=2, is_reached=some_prefix_is_cut
    ),
    # A model of so few forms that a wide search is strictly exhaustive.
    "one strict direction": Setting(
        seed=3, end=4, beam_size=20, max_length=8, is_reached=one_is_strict
    ),
}


@pytest.fixture(scope="module", params=SETTINGS.values(), ids=SETTINGS)
def setting(request: pytest.FixtureRequest) -> Setting:
    setting: Setting = request.param
    return setting


@pytest.fixture(scope="module")
def proofs(setting: Setting, tmp_path_factory: pytest.TempPathFactory) -> list[Proofs]:
    folder = tmp_path_factory.mktemp("models")
    left = write_model(folder / "left", setting.seed, end=setting.end)
    right = write_model(folder / "right", 5, end=1, options=RIGHT_TO_LEFT)
    return compared_proofs(left, right, setting.beam_size, setting.max_length)


def test_some_search_of_a_setting_reaches_what_it_is_for(
    setting: Setting, proofs: list[Proofs]
) -> None:
    assert any(map(setting.is_reached, proofs))


def test_dropped_prefixes_of_both_directions_count(proofs: list[Proofs]) -> None:
    for both, left, right in proofs:
        assert both.dropped == left.dropped + right.dropped


def test_truncated_prefixes_of_both_directions_count(proofs: list[Proofs]) -> None:
    for both, left, right in proofs:
        assert both.truncated == left.truncated + right.truncated


def test_an_average_is_strictly_exhaustive_if_both_directions_are(proofs: list[Proofs]) -> None:
    for both, left, right in proofs:
        assert both.strict == (left.strict and right.strict)


# --- its bound ---


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
