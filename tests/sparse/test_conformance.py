"""Every implementation of entmax against slow definitions; test_kernels.py runs Triton.

A limit of a difference is a number of roundings, a constant below, times the rounding of one
operation. The constants are about ten times what differences reach: the order in which an
implementation adds and multiplies is its own. A wrong formula differs by far more.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import entmax as peer
import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import entmax, log_entmax
from onmt_entmax.sparse.backends import solve
from tests.oracles import (
    entmax15_by_sorting,
    entmax_of_decimals,
    entmax_oracle,
    entropy_oracle,
)
from tests.sparse.alphas import forms_of_alpha
from tests.sparse.implementations import CPU, GPU, INTERPRETED, device_of, only

INF = float("inf")
# The interpreter takes seconds for what others do at once: it gets a part of the cases.
if INTERPRETED:
    ALPHAS: tuple[float, ...] = (1.2, 1.5, 2.0)
    LENGTHS: tuple[int, ...] = (1, 9, 140)
    WIDTHS: tuple[int, ...] = (200,)  # of special rows
    EVERY = 3  # of the rows of decimals, one is taken
else:
    ALPHAS = (1 + 1e-6, 1.05, 1.2, 1.33, 1.5, 1.75, 2.0, 2.5, 4.0)
    LENGTHS = (1, 2, 9, 17, 50, 513, 776, 5003)
    WIDTHS = (200, 5200)
    EVERY = 1

# Tolerances, in roundings of the type: in float64, those of the definition count, too.
OF_A_PROBABILITY = 16  # of one score; for each score of the support there is one rounding more
OF_A_ROOT = 8  # of a probability above alpha 2, which is a root
OF_A_LOGARITHM = 40  # relative to the logarithm's size
OF_A_BASE = 8  # of p ** (alpha - 1), relative to 1
OF_A_CONJUGATE = 64
OF_DECIMALS = 8  # of a probability of fifty digits
OF_A_SMALL_PROBABILITY = 16  # of one of fifty digits, relative to its size
DOUBLE_EPS = torch.finfo(torch.float64).eps  # of the definition, which computes in float64
ROWS = {
    "equal": [0.0] * 40,
    "one huge": [0.0, 1e30, 0.0, 5.0],
    "ties at the threshold": [1.0, 1.0, 0.0, 0.0, -1.0, -1.0],
    "tied leaders": [2.0, 2.0, 2.0, -5.0],
    "subnormal": [1e-40, -1e-40, 0.0, 3e-42],
    "-inf": [-INF, 0.3, -INF, 0.1],
    "one finite": [-INF, 7.0, -INF],
    "masked": [-1e18] * 9,
    "far from 0": [1e5, 1e5 + 0.25, 1e5 - 0.5, 1e5 + 0.125],
    "outlier": [0.0] * 199 + [1.5],
}


def rounding(exact: Tensor, alpha: float, dtype: torch.dtype) -> Tensor:
    """Return how far probabilities of a type may be from the exact ones.

    Args:
        exact: the probabilities of the definition, ``(rows, n)``.
        alpha: of the mapping.
        dtype: of the probabilities.

    Returns:
        ``(rows, 1)``.
    """
    of_one = max(torch.finfo(dtype).eps, 2 * DOUBLE_EPS)  # in float64, that of the definition too
    in_support = (exact > 0).sum(-1, keepdim=True)  # the threshold sums over them
    error = of_one * (OF_A_PROBABILITY + in_support) * exact.amax(-1, keepdim=True)
    if dtype == torch.float64:  # the definition divides by alpha - 1
        error = error / min(alpha - 1, 1)
    if alpha > 2:  # a root of the base, which float64 rounds
        error = error + OF_A_ROOT * DOUBLE_EPS ** (1 / (alpha - 1))
    return error


def special_rows(length: int) -> Tensor:
    """Return ROWS ``(rows, length)``, filled up with -inf."""
    rows = torch.full((len(ROWS), length), -INF, dtype=torch.float64)
    for row, scores in zip(rows, ROWS.values(), strict=True):
        row[: len(scores)] = torch.tensor(scores, dtype=torch.float64)
    return rows


def random_rows(length: int) -> Tensor:
    """Return rows ``(3, length)`` of scores near each other, of usual ones and far apart."""
    generator = torch.Generator().manual_seed(length)
    spread = torch.tensor([[0.05], [1.0], [5.0]], dtype=torch.float64)
    return torch.randn(3, length, dtype=torch.float64, generator=generator) * spread


MakeRows = Callable[[int], Tensor]


@cache  # for the other tests and implementations: the definition takes longer than all of them
def rows_and_exact_probabilities(
    make_rows: MakeRows, length: int, alpha: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return rows of a type, and their probabilities by definition in float64, on the CPU."""
    rows = make_rows(length).to(dtype)
    return rows, entmax_oracle(rows, alpha)


# In float64 every second alpha, not the first one: near 1, the definition has few digits.
WIDE = [(alpha, torch.float32) for alpha in ALPHAS] + [(a, torch.float64) for a in ALPHAS[1::2]]
# Special rows are not there in float16, whose largest number is 65,504.
HALF = [(1.5, torch.bfloat16), (1.5, torch.float16), (2.0, torch.float16)]
HALF_OF_SPECIAL_ROWS = [(1.5, torch.bfloat16)]


class Case(NamedTuple):
    """Rows of several lengths, in a type, and their alpha."""

    make_rows: MakeRows
    lengths: tuple[int, ...]
    alpha: float
    dtype: torch.dtype

    def rows(self, device: str) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield rows ``(rows, n)`` of each length and their exact probabilities on a device."""
        for length in self.lengths:
            rows, exact = rows_and_exact_probabilities(
                self.make_rows, length, self.alpha, self.dtype
            )
            yield rows.to(device), exact.to(device)


def cases_of(
    types: list[tuple[float, torch.dtype]], types_of_special_rows: list[tuple[float, torch.dtype]]
) -> dict[str, Case]:
    """Return cases of random rows of all lengths and of special ones, by their names."""
    cases = {
        f"random rows, {alpha}, {dtype}": Case(random_rows, LENGTHS, alpha, dtype)
        for alpha, dtype in types
    }
    return cases | {
        f"special rows, {alpha}, {dtype}": Case(special_rows, WIDTHS, alpha, dtype)
        for alpha, dtype in types_of_special_rows
    }


CASES = cases_of(WIDE, WIDE)
CASES_OF_16_BITS = cases_of(HALF, HALF_OF_SPECIAL_ROWS)


# --- probabilities and their logarithms ------------------------------------------------------


class Result(NamedTuple):
    """What an implementation computes for rows of a case; all are ``(rows, n)``."""

    exact: Tensor
    """By definition in float64."""
    p: Tensor
    logs: Tensor
    of: str
    """The rows and the form of alpha, for messages."""


class Computed(NamedTuple):
    """The results of a case, for each of its lengths and each form of alpha."""

    case: Case
    results: list[Result]


def results_of(case: Case, device: str) -> Iterator[Result]:
    for rows, exact in case.rows(device):
        forms = zip(("a number", "alphas"), forms_of_alpha(case.alpha, rows), strict=True)
        for name, form in forms:
            of = f"{rows.shape[1]} scores, {name}"
            yield Result(exact, entmax(rows, form), log_entmax(rows, form), of)


@pytest.fixture(scope="module")
def computed(request: pytest.FixtureRequest) -> Computed:
    """The results of an implementation, which several tests read."""
    implementation, case = request.param
    with only(implementation), torch.no_grad():
        return Computed(case, [*results_of(case, device_of(implementation))])


def on_each_implementation(cases: dict[str, Case]) -> list[Any]:
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
    _, _, alpha, dtype = computed.case
    for exact, p, _, of in computed.results:
        assert p.dtype == dtype
        assert ((p.double() - exact).abs() <= rounding(exact, alpha, dtype)).all(), of
        assert (p[exact > 1e-5] > 0).all(), f"{of}: a probability is lost"


@of_all_types
def test_logarithms_have_the_support_of_the_probabilities(computed: Computed) -> None:
    for _, p, logs, of in computed.results:
        assert logs.dtype == computed.case.dtype
        assert torch.equal(p > 0, logs > -INF), of


@of_wide_types
def test_logarithms_equal_the_definition(computed: Computed) -> None:
    """Logarithms of 16 bits have too few digits to compare."""
    _, _, alpha, dtype = computed.case
    for exact, _, logs, of in computed.results:
        # An exponential adds its rounding, in relation to the logarithm's size.
        close = 8 * rounding(exact, alpha, dtype)
        assert ((logs.double().exp() - exact).abs() <= close).all(), of


@of_wide_types
def test_logarithms_are_those_of_the_probabilities(computed: Computed) -> None:
    """All but the smallest, which the last digits of scores far apart decide.

    A logarithm is rounded in relation to its size. A probability is a power of a base that is
    rounded in relation to 1, so that a small base has fewer digits.
    """
    eps = torch.finfo(computed.case.dtype).eps
    for _, p, logs, of in computed.results:
        base = p.double().clamp_min(1e-300) ** min(computed.case.alpha - 1, 1)
        close = eps * (OF_A_LOGARITHM * (1 + logs.double().abs()) + OF_A_BASE / base)
        difference = (p.double().log() - logs.double()).abs()
        assert (difference <= close)[p > 1e-30].all(), of


# --- `solve`, which takes float32 and float64 ------------------------------------------------

of_wide_cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@of_wide_cases
def test_solve_replaces_scores_by_probabilities(case: Case, device: str) -> None:
    for rows, exact in case.rows(device):
        scores = rows.clone()
        _, maxima = solve(scores, case.alpha, scores)
        close = rounding(exact, case.alpha, case.dtype)
        assert ((scores.double() - exact).abs() <= close).all(), f"{rows.shape[1]} scores"
        assert torch.equal(maxima, rows.amax(-1)), f"{rows.shape[1]} scores"


@of_wide_cases
def test_solve_returns_shifted_conjugates(case: Case, device: str) -> None:
    """A conjugate is the expected score plus entropy; shifted, less the row's largest score."""
    close = OF_A_CONJUGATE * max(torch.finfo(case.dtype).eps, 4 * DOUBLE_EPS)
    if case.alpha <= 1.01:  # the definition of entropy divides by alpha - 1, which is 1e-6 or more
        close = 1e6 * close
    for rows, exact in case.rows(device):
        shifted, maxima = solve(rows.clone(), case.alpha, torch.empty_like(rows))
        below = torch.where(exact > 0, rows.double() - maxima.double().unsqueeze(1), 0.0)
        conjugate = (exact * below).sum(1) + entropy_oracle(exact, case.alpha)
        assert (shifted >= 0).all(), f"{rows.shape[1]} scores"
        assert ((shifted.double() - conjugate).abs() <= close * (1 + conjugate)).all(), (
            f"{rows.shape[1]} scores"
        )


# --- fifty digits ----------------------------------------------------------------------------


def rows_of_decimals(alpha: float, dtype: torch.dtype) -> list[Tensor]:
    """Return rows ``(1, n)`` on both sides of the threshold and next to it, random, and equal."""
    edge = 1 / (alpha - 1)  # a score so far below 0 is the first to have no probability
    rows = [[0.0, -edge * near] for near in (0.3, 0.99, 0.9999, 1.01)]
    rows += [*(torch.rand(3, 5, dtype=torch.float64) * 1.2 * edge).tolist(), [0.25] * 7]
    return [torch.tensor([scores], dtype=dtype) for scores in rows[::EVERY]]


def probabilities_and_decimals(
    alpha: float, dtype: torch.dtype, device: str
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield probabilities ``(n,)`` and, in float64, those from fifty digits."""
    for row in rows_of_decimals(alpha, dtype):
        exact = entmax_of_decimals(tuple(row[0].tolist()), alpha)
        for form in forms_of_alpha(alpha, row.to(device)):
            with torch.no_grad():
                p = entmax(row.to(device), form)[0].cpu().double()
            yield p, torch.tensor(exact, dtype=torch.float64)


# In these, a small probability has as many digits as a large one.
WITH_ALL_DIGITS = [
    (1.37, torch.float64),
    (1.5, torch.float64),
    (2.0, torch.float64),
    (2.25, torch.float32),
    (5.0, torch.float64),
]
WITH_FEWER_DIGITS = [
    (1.0001, torch.float64),
    (1.1, torch.float32),
    (1.5, torch.float32),
    (2.0, torch.float32),
]
if INTERPRETED:  # the kernels take alphas up to 2
    WITH_ALL_DIGITS = [case for case in WITH_ALL_DIGITS if case[0] <= 2]


@pytest.mark.parametrize(("alpha", "dtype"), [*WITH_ALL_DIGITS, *WITH_FEWER_DIGITS])
def test_probabilities_equal_fifty_digits(alpha: float, dtype: torch.dtype, device: str) -> None:
    # Kernels take powers of 1 / (alpha - 1), which multiply the rounding of their base.
    close = OF_DECIMALS * torch.finfo(dtype).eps * max(1, 0.5 / (alpha - 1))
    for p, exact in probabilities_and_decimals(alpha, dtype, device):
        assert ((p - exact).abs() <= close).all()


@pytest.mark.parametrize(("alpha", "dtype"), WITH_ALL_DIGITS)
def test_small_probabilities_equal_fifty_digits(
    alpha: float, dtype: torch.dtype, device: str
) -> None:
    for p, exact in probabilities_and_decimals(alpha, dtype, device):
        # The last digit of a score changes several digits of a small probability.
        of_scores = 1e-13 * alpha / exact.clamp_min(1e-30)
        close = OF_A_SMALL_PROBABILITY * torch.finfo(dtype).eps + of_scores
        assert ((p / exact - 1).abs() <= close)[exact > 1e-6].all()


# --- other implementations -------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 2, 13, 200])
def test_probabilities_of_1_5_entmax_equal_algorithm_2(length: int, device: str) -> None:
    """1.5-entmax by sorting, in Peters, Niculae and Martins (2019)."""
    for row in torch.randn(4, length, dtype=torch.float64, device=device) * 2:
        expected = entmax15_by_sorting(row)
        torch.testing.assert_close(entmax(row, 1.5), expected, rtol=0, atol=2e-15)


@pytest.mark.parametrize("length", [1, 2, 13, 200])
@pytest.mark.parametrize(
    ("alpha", "peer_mapping"), [(1.5, peer.entmax15), (2.0, peer.sparsemax)], ids=["1.5", "2.0"]
)
def test_gradients_equal_those_of_entmax_1_3(
    alpha: float, peer_mapping: Callable[..., Tensor], length: int, device: str
) -> None:
    scores, upstream = torch.randn(2, 4, length, dtype=torch.float64, device=device) * 2
    ours, theirs = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    entmax(ours, alpha).backward(upstream)
    peer_mapping(theirs, dim=-1).backward(upstream)
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=0, atol=1e-12)
