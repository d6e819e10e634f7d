"""Certificates of averages of both directions, compared with those of the models alone.

The models are random. Each test asserts that its seeds gave models that show the difference; the
larger `end` is, the fewer forms a model has.
"""

import math
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax import Inflector
from onmt_entmax.search.certificate import Certificate
from tests.cli.directions import QUESTIONS, RIGHT_TO_LEFT
from tests.inflection_models import write_model


class Proofs(NamedTuple):
    """The certificate of an average of both directions, and those of its models alone."""

    both: Certificate
    left: Certificate
    right: Certificate


def compared_proofs(left: Path, right: Path, beam_size: int, max_length: int) -> list[Proofs]:
    """Return the certificates of all `QUESTIONS`.

    Args:
        left: a left-to-right model.
        right: a right-to-left model.
        beam_size: prefixes that a search follows, and forms that it lists.
        max_length: letters of the longest form.
    """
    sizes = {"n_best": beam_size, "beam_size": beam_size, "max_length": max_length}
    certificates = [
        [answer.certificate for answer in Inflector(folders, **sizes).answers(QUESTIONS)]
        for folders in ([left, right], [left], [right])
    ]
    return [Proofs(*proofs) for proofs in zip(*certificates, strict=True)]


# --- counts of prefixes ---


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A right-to-left model of many forms."""
    folder = tmp_path_factory.mktemp("right") / "model"
    return write_model(folder, seed=5, end=1, options=RIGHT_TO_LEFT)


def test_an_average_counts_the_prefixes_that_either_direction_dropped(
    right: Path, tmp_path: Path
) -> None:
    """A beam of one prefix drops the others."""
    left = write_model(tmp_path / "left", seed=7, end=1)
    compared = compared_proofs(left, right, beam_size=1, max_length=8)
    assert any(proofs.left.dropped and proofs.right.dropped for proofs in compared)
    for proofs in compared:
        assert proofs.both.dropped == proofs.left.dropped + proofs.right.dropped


def test_an_average_counts_the_prefixes_that_the_length_limit_cut_in_either_direction(
    right: Path, tmp_path: Path
) -> None:
    left = write_model(tmp_path / "left", seed=7, end=1)
    compared = compared_proofs(left, right, beam_size=20, max_length=2)
    assert any(proofs.left.truncated or proofs.right.truncated for proofs in compared)
    for proofs in compared:
        assert proofs.both.truncated == proofs.left.truncated + proofs.right.truncated


def test_an_average_is_strictly_exhaustive_only_if_both_directions_are(
    right: Path, tmp_path: Path
) -> None:
    """Here the left-to-right model is, since it has few forms; the other one is not always."""
    left = write_model(tmp_path / "left", seed=3, end=4)
    compared = compared_proofs(left, right, beam_size=20, max_length=8)
    assert any(proofs.left.strict != proofs.right.strict for proofs in compared)
    for proofs in compared:
        assert proofs.both.strict == (proofs.left.strict and proofs.right.strict)


# --- the bound of excluded outputs ---


def bound_of_excluded(proof: Certificate) -> float:
    """Return an upper bound for the probability of any output that a request excludes.

    Such an output was excluded when the search met it, or the search never met it, since it began
    with a prefix that was dropped or cut.
    """
    return math.exp(max(proof.log_excluded_bound, proof.log_bound))


@pytest.fixture(params=[pytest.param(40, id="few forms"), pytest.param(50, id="many forms")])
def greedy_proofs(request: pytest.FixtureRequest, tmp_path: Path) -> list[Proofs]:
    """Certificates of searches that follow a single prefix, in random models."""
    seed = request.param
    left = write_model(tmp_path / "left", seed, end=3)
    right = write_model(tmp_path / "right", seed + 14, end=3, options=RIGHT_TO_LEFT)
    compared = compared_proofs(left, right, beam_size=1, max_length=8)
    # Otherwise a mean of the excluded bounds alone would pass the test.
    assert any(
        proof.log_bound > proof.log_excluded_bound
        for proofs in compared
        for proof in (proofs.left, proofs.right)
    )
    return compared


def test_the_excluded_bound_of_an_average_is_the_mean_of_both_bounds(
    greedy_proofs: list[Proofs],
) -> None:
    for proofs in greedy_proofs:
        mean = (bound_of_excluded(proofs.left) + bound_of_excluded(proofs.right)) / 2
        assert math.exp(proofs.both.log_excluded_bound) == pytest.approx(mean, rel=1e-6)
