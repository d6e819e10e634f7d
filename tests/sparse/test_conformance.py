"""Every implementation of entmax against a slow definition in float64; see `row_cases`.

test_kernels.py runs these tests with Triton.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax, log_entmax
from tests.sparse.alphas import as_number_and_tensor
from tests.sparse.implementations import CPU, GPU, device_of, only
from tests.sparse.row_cases import CASES, CASES_OF_16_BITS, INF, Case, rounding

# Tolerances, in machine epsilons of the type: of a logarithm, relative to one plus its size; and of
# a base p ** (alpha - 1), relative to 1. `row_cases` says how they were chosen.
LOGARITHM_ROUNDINGS = 40
BASE_ROUNDINGS = 8


class Result(NamedTuple):
    """What an implementation computes for rows of a case; all are ``(rows, n)``."""

    exact: Tensor
    """The probabilities by definition, in float64."""
    p: Tensor
    """The probabilities that it computes."""
    logs: Tensor
    """Their logarithms."""
    name: str
    """The length of the rows and how alpha is given, for messages."""


class Computed(NamedTuple):
    """The results of a case: for each of its lengths one with a number, and one with a tensor."""

    case: Case
    results: list[Result]


def results_of(case: Case, device: str) -> Iterator[Result]:
    """Yield the results of a case: for each length one with a number, and one with a tensor."""
    for rows, exact in case.rows(device):
        for alpha_argument in as_number_and_tensor(case.alpha, rows):
            kind = "an alpha for each row" if isinstance(alpha_argument, Tensor) else "one alpha"
            p, logs = entmax(rows, alpha_argument), log_entmax(rows, alpha_argument)
            yield Result(exact, p, logs, name=f"{rows.shape[1]} scores, {kind}")


@pytest.fixture(scope="module")
def computed(request: pytest.FixtureRequest) -> Computed:
    """The results of an implementation, which several tests read."""
    implementation, case = request.param
    with only(implementation), torch.no_grad():
        return Computed(case, [*results_of(case, device_of(implementation))])


def on_each_implementation(cases: dict[str, Case]) -> list[Any]:
    """Return parameters of `computed`: each case, by each implementation that runs here."""
    return [
        pytest.param((implementation, case), id=f"{implementation}-{name}")
        for name, case in cases.items()
        for implementation in (*CPU, *GPU)
    ]


# Tests of the same case must have the same objects, to share what is computed for it.
OF_WIDE_TYPES = on_each_implementation(CASES)
OF_16_BITS = on_each_implementation(CASES_OF_16_BITS)
of_wide_types = pytest.mark.parametrize("computed", OF_WIDE_TYPES, indirect=True, scope="module")
of_all_types = pytest.mark.parametrize(
    "computed", [*OF_WIDE_TYPES, *OF_16_BITS], indirect=True, scope="module"
)


@of_all_types
def test_probabilities_equal_the_definition(computed: Computed) -> None:
    case = computed.case
    for result in computed.results:
        error = (result.p.double() - result.exact).abs()
        assert (error <= rounding(result.exact, case.alpha, case.dtype)).all(), result.name


@of_all_types
def test_no_probability_above_1e_5_is_lost(computed: Computed) -> None:
    """Rounding may put a score on the threshold outside; it may not take a larger probability."""
    for result in computed.results:
        assert (result.p[result.exact > 1e-5] > 0).all(), result.name


@of_all_types
def test_results_have_the_type_of_the_scores(computed: Computed) -> None:
    for result in computed.results:
        assert result.p.dtype == result.logs.dtype == computed.case.dtype, result.name


@of_all_types
def test_logarithms_have_the_support_of_the_probabilities(computed: Computed) -> None:
    for result in computed.results:
        assert torch.equal(result.p > 0, result.logs > -INF), result.name


@of_wide_types
def test_logarithms_equal_the_definition(computed: Computed) -> None:
    """In 16 bits, logarithms have too few digits for a comparison."""
    case = computed.case
    for result in computed.results:
        error = (result.logs.double().exp() - result.exact).abs()
        # The exponential multiplies the rounding of a logarithm by the logarithm's size, and the
        # result by p: together by at most 1 / e. With its own rounding, eight times is ample.
        assert (error <= 8 * rounding(result.exact, case.alpha, case.dtype)).all(), result.name


@of_wide_types
def test_logarithms_are_those_of_the_probabilities(computed: Computed) -> None:
    """Probabilities up to 1e-30 are left out: the last digits of scores far apart decide them.

    A logarithm is rounded in relation to its size. A probability is a power of a base that is
    rounded in relation to 1, so that a small base has fewer digits.
    """
    alpha, eps = computed.case.alpha, torch.finfo(computed.case.dtype).eps
    for result in computed.results:
        p, logs = result.p.double(), result.logs.double()
        base = p.clamp_min(1e-300) ** min(alpha - 1, 1)
        tolerance = eps * (LOGARITHM_ROUNDINGS * (1 + logs.abs()) + BASE_ROUNDINGS / base)
        error = (p.log() - logs).abs()
        assert (error <= tolerance)[p > 1e-30].all(), result.name
