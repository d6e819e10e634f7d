"""The cpu code: every instruction set against float64, and its place beside the PyTorch code."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from onmt_entmax.sparse import entmax, entmax_loss, jacobian, log_entmax
from onmt_entmax.sparse.backends import backend_for, cpu, pytorch
from tests.commands import ROOT
from tests.native_modules import assert_built, under
from tests.oracles import entmax_oracle

INF = float("inf")
ALPHAS = (1.1, 1.2, 1.25, 1.33, 1.5, 1.9, 2.0, 2.25, 4.0)
built = pytest.mark.skipif(cpu.module is None, reason="the cpu module was not built")


def test_it_is_there_where_it_can_be_built() -> None:
    assert_built(cpu.module)


@pytest.fixture(params=[1, 2, 3])
def instructions(request: pytest.FixtureRequest) -> Iterator[int]:
    """One instruction set after the other, as far as this processor has them."""
    yield from under(cpu.module, request.param)


def close(scores: Tensor, alpha: float) -> None:
    """Mapping and logarithm against the oracle in float64, in units of the last place."""
    result, oracle = cpu.probabilities(scores, alpha), entmax_oracle(scores, alpha)
    assert result is not None
    size = (oracle > 0).sum(-1, keepdim=True)
    few = torch.finfo(scores.dtype).eps * (16 + size)
    if scores.dtype == torch.float64:
        # The oracle is no more exact than we are: a power magnifies both errors.
        few = few / min(alpha - 1, 1)
    if alpha > 2:
        # The slope at the threshold is infinite, and magnifies the rounding of the threshold.
        few = few + 4 * 2.0 ** (-52 / (alpha - 1))
    assert ((result.double() - oracle).abs() <= few * oracle.amax(-1, keepdim=True)).all()
    assert ((result.double().sum(-1, keepdim=True) - 1).abs() <= few).all()
    assert (result[oracle > 1e-5] > 0).all()
    assert (result[scores < scores.amax(-1, keepdim=True) - 1.001 / (alpha - 1)] == 0).all()
    logs = cpu.log_probabilities(scores, alpha)
    assert logs is not None
    assert torch.allclose(logs.exp(), result, rtol=0, atol=float(few.max()))
    assert ((logs > -INF) | (result == 0)).all()


@built
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("length", [1, 2, 7, 17, 50, 511, 513, 776, 4095, 5003])
def test_equals_the_oracle(
    instructions: int, alpha: float, length: int, dtype: torch.dtype
) -> None:
    torch.manual_seed(length)
    for spread in (0.05, 1.0, 5.0):
        close(torch.randn(5, length, dtype=dtype) * spread, alpha)


@built
@pytest.mark.parametrize("alpha", ALPHAS)
def test_adversarial_rows(instructions: int, alpha: float) -> None:
    long = torch.zeros(4999)
    rows = [
        torch.full((5000,), 3.0),
        torch.tensor([0.0, 1e30, 0.0, 5.0]),
        torch.tensor([1.0, 1.0, 0.0, 0.0, -1.0, -1.0]),
        torch.tensor([1e-40, -1e-40, 0.0, 3e-42]),
        torch.tensor([-INF, 7.0, -INF]),
        torch.full((900,), -1e18),
        torch.cat([long, torch.tensor([1.5])]),
        torch.cat([torch.full((4990,), -INF), torch.randn(10)]),
        torch.randn(5000) + 1e5,
        -torch.arange(5000).float() / 100,
    ]
    for row in rows:
        close(row.unsqueeze(0), alpha)


@built
@given(st.integers(1, 700), st.floats(0, 20), st.floats(1.1, 2), st.integers(0, 9), st.booleans())
def test_of_any_length(length: int, spread: float, alpha: float, seed: int, wide: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(3, length, generator=generator, dtype=torch.float64) * spread
    close(scores if wide else scores.float(), alpha)


@built
@pytest.mark.parametrize("alpha", [1.2, 1.33, 1.5, 2.0, 2.25])
@pytest.mark.parametrize("length", [7, 776, 5003])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_agrees_with_the_pytorch_code(
    instructions: int,
    alpha: float,
    length: int,
    dtype: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Losses, mappings and their gradients, the cpu module taken away the second time."""
    torch.manual_seed(2)
    spreads = torch.tensor([0.01, 0.3, 1.0, 2.0, 8.0], dtype=dtype).repeat(4).unsqueeze(1)
    scores = torch.randn(20, length, dtype=dtype) * spreads
    target, incoming = torch.randint(length, (20,)), torch.randn(20, length, dtype=dtype)
    outcomes = []
    for module in (cpu.module, None):
        monkeypatch.setattr(cpu, "module", module)
        z = scores.clone().requires_grad_()
        losses = entmax_loss(z, target, alpha, reduction="none", label_smoothing=0.1)
        of_losses = torch.autograd.grad(losses @ torch.arange(20.0, dtype=dtype), z)[0]
        of_mapping = torch.autograd.grad((entmax(z, alpha) * incoming).sum(), z)[0]
        outcomes.append((losses.detach(), of_losses, of_mapping))
    tolerance = 2e-4 if dtype == torch.float32 else 1e-10
    for ours, other in zip(*outcomes, strict=True):
        torch.testing.assert_close(ours, other, rtol=tolerance, atol=tolerance)


@built
@pytest.mark.parametrize("alpha", [1.1, 1.2, 1.5, 1.9, 2.0, 2.25])
@pytest.mark.parametrize("length", [3, 16, 40, 5003])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_of_logarithms(
    instructions: int, alpha: float, length: int, dtype: torch.dtype
) -> None:
    """Those of PyTorch in float64, also of a probability that is too small for its type."""
    torch.manual_seed(length)
    scores = torch.randn(6, length, dtype=dtype) * torch.logspace(-2, 1, 6).unsqueeze(1)
    scores[0, :2] = torch.tensor([1 / (alpha - 1), 1e-7])
    scores[0, 2:] = -INF
    incoming = torch.randn(6, length, dtype=dtype)
    z = scores.clone().requires_grad_()
    logs = log_entmax(z, alpha)
    incoming[logs == -INF] = INF
    (found,) = torch.autograd.grad(logs, z, incoming)
    wide = logs.detach().double()
    expected = jacobian.log_scores_gradient(wide, alpha, incoming.double())
    scale = expected.abs().amax(1, keepdim=True)
    few = 64 * torch.finfo(dtype).eps * (1 + 100 * (alpha > 2))
    assert ((found - expected).abs() <= few * scale).all()
    if alpha == 1.1 and dtype == torch.float32:
        assert logs.exp()[0, 1] == 0


@built
@pytest.mark.parametrize("part", [0.0, 1 / 64, 1.0])
def test_entries_and_dense_rows_are_one_row_each(part: float) -> None:
    """Some rows as entries, some not: together the probabilities of all, in order."""
    torch.manual_seed(3)
    scores = torch.randn(30, 3000) * torch.tensor([0.01, 5.0, 5.0]).repeat(10).unsqueeze(1)
    scores = scores.sort(stable=True)[0][scores.std(1).argsort()]
    solved = cpu.conjugate(scores, 1.5, sparse_part=part)
    position, row, probability = solved.entries
    assert (position.diff() > 0).all()
    assert torch.equal(position // 3000, row)
    assert (len(row) > 0) == (part > 0)
    whole = torch.zeros_like(scores)
    whole.view(-1)[position] = probability
    for begin, end in solved.dense:
        limits = slice(begin, end)
        known = (solved.maxima[limits], solved.threshold[limits])
        cpu.write_probabilities(scores[limits], 1.5, *known, whole[limits])
    torch.testing.assert_close(whole, entmax(scores, 1.5), rtol=1e-5, atol=1e-7)


@built
def test_many_changes_between_dense_and_sparse_rows_make_all_dense() -> None:
    scores = torch.randn(40, 3000) * torch.tensor([0.001, 9.0]).repeat(20).unsqueeze(1)
    solved = cpu.conjugate(scores, 1.5)
    assert solved.dense == [(0, 40)]
    assert len(solved.entries.row) == 0


@built
@pytest.mark.parametrize("length", [3, 40, 700, 5003])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_row_with_its_alpha_is_that_of_one_alpha(
    instructions: int, dtype: torch.dtype, length: int
) -> None:
    numbers = [1.5, 1.5, 2.0, 1.25, 1.33, 1.1, 2.25, 4.0]
    alphas = torch.tensor(numbers, dtype=torch.float64).unsqueeze(1)
    scores, incoming = torch.randn(2, len(numbers), length, dtype=dtype) * 2
    every = cpu.probabilities(scores, alphas)
    logs, solved = cpu.log_probabilities(scores, alphas), cpu.conjugate(scores, alphas)
    factors, out = torch.rand(len(numbers), dtype=dtype), torch.empty_like(scores)
    known = (solved.maxima, solved.threshold, out, factors)
    cpu.write_probabilities(scores, alphas, *known)
    gradient = cpu.scores_gradient(every, alphas, incoming, dtype)
    of_logs = cpu.log_scores_gradient(logs[:6], alphas[:6], incoming[:6])
    both = cpu.gradients(every, alphas, incoming, dtype)
    for row, alpha in enumerate(numbers):
        own = slice(row, row + 1)
        assert torch.equal(every[own], cpu.probabilities(scores[own], alpha))
        assert torch.equal(logs[own], cpu.log_probabilities(scores[own], alpha))
        one = cpu.conjugate(scores[own], alpha, sparse_part=0.0)
        assert torch.equal(solved.shifted[own], one.shifted)
        assert torch.equal(solved.threshold[own], one.threshold)
        known = (one.maxima, one.threshold, torch.empty_like(scores[own]), factors[own])
        cpu.write_probabilities(scores[own], alpha, *known)
        assert torch.equal(out[own], known[2])
        alone = cpu.scores_gradient(every[own], alpha, incoming[own], dtype)
        assert torch.equal(gradient[own], alone)
        if alpha <= 2:
            alone_of_log = cpu.log_scores_gradient(logs[own], alpha, incoming[own])
            assert torch.equal(of_logs[row], alone_of_log[0])
        assert torch.allclose(both[0][own], alone, rtol=1e-4, atol=1e-5)


@built
@pytest.mark.parametrize("alpha", [1.33, 1.5])
def test_threads_change_nothing(alpha: float) -> None:
    scores = torch.randn(64, 9000) * torch.logspace(-2, 1, 64).unsqueeze(1)
    outcomes = []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        z = scores.clone().requires_grad_()
        result, loss = entmax(z, alpha), entmax_loss(z, torch.arange(64), alpha)
        gradient = torch.autograd.grad(loss + result.square().sum(), z)[0]
        outcomes.append((result.detach(), loss.detach(), gradient, log_entmax(scores, alpha)))
        torch.set_num_threads(1)
    for one, three in zip(*outcomes, strict=True):
        assert torch.equal(one, three)


@built
@pytest.mark.parametrize("length", [5, 700, 9000])
@pytest.mark.parametrize("bad", [float("nan"), INF])
def test_what_is_not_finite_stays_in_its_row(instructions: int, length: int, bad: float) -> None:
    scores = torch.randn(6, length)
    clean = cpu.probabilities(scores, 1.5)
    scores[2, length // 2] = bad
    kept = torch.arange(6) != 2
    for made in (cpu.probabilities(scores, 1.5), cpu.log_probabilities(scores, 1.5)):
        assert made is not None
        assert made[2].isnan().all()
        assert not made[kept].isnan().any()
    result = cpu.probabilities(scores, 1.5)
    assert result is not None
    assert clean is not None
    assert torch.equal(result[kept], clean[kept])
    loss = entmax_loss(scores, torch.zeros(6, dtype=torch.int64), 1.5, reduction="none")
    assert loss.isnan().tolist() == [False, False, True, False, False, False]


@built
def test_what_it_leaves_to_pytorch() -> None:
    scores = torch.randn(3, 5)
    assert backend_for(scores, 1.5) is cpu
    assert backend_for(scores, torch.full((3, 1), 1.5)) is cpu
    for alpha in (1.0, 1.05, torch.tensor([[1.5], [1.05], [2.0]])):
        assert backend_for(scores, alpha) is pytorch
    for others in (scores.bfloat16(), scores[:0], torch._neg_view(scores)):
        assert backend_for(others, 1.5) is pytorch
    assert backend_for(scores, 1.5, torch._efficientzerotensor((3, 5))) is pytorch
    strided = scores.t()
    assert torch.equal(entmax(strided, 1.5), entmax(strided.contiguous(), 1.5))


@built
def test_an_instruction_set_that_is_not_there_is_refused() -> None:
    assert cpu.module is not None
    with pytest.raises(ValueError, match="instruction sets"):
        cpu.module.use_instruction_set(4)


@built
@pytest.mark.parametrize(
    "file",
    [
        "test_gradient.py",
        pytest.param("test_entmax.py", marks=pytest.mark.slow),
        pytest.param("test_losses.py", marks=pytest.mark.slow),
        pytest.param("test_attention.py", marks=pytest.mark.slow),
    ],
)
def test_all_holds_without_it_too(file: str) -> None:
    """The PyTorch code alone; it has no gradient in a tensor of alphas, so that is left out."""
    path = f"tests/sparse/{file}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-k", "not in_alpha", path],
        cwd=ROOT,
        env={**os.environ, "ONMT_ENTMAX_NATIVE": "0", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
