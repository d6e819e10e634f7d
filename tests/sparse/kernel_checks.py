"""What the GPU kernels must do; test_kernels.py runs this, in Triton's interpreter or on a GPU.

Not collected by itself: the interpreter has to be asked for before Triton is imported.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest
import torch
from onmt_entmax.sparse.jacobian import scores_gradient
from torch import Tensor

from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.sparse import entmax, entmax_loss, log_entmax
from onmt_entmax.sparse.backends import backend_for, has_kernels, kernels_start, triton
from tests.oracles import entmax_oracle, loss_oracle

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ALPHAS = (1.05, 1.2, 1.33, 1.5, 2.0, 3.0)
slow = pytest.mark.slow
# The same, with alpha 3 in the slow tests: the interpreter needs seconds for its bisection.
ALPHAS_SLOW_AT_3 = (*ALPHAS[:-1], pytest.param(3.0, marks=slow))
INF = float("inf")


@contextmanager
def in_pytorch() -> Iterator[None]:
    """Without kernels."""
    triton.failures.append(RuntimeError("left out on purpose"))
    try:
        yield
    finally:
        triton.failures.clear()


@pytest.fixture(autouse=True)
def kernels_are_there() -> Iterator[None]:
    """Every test begins with kernels, and no test may end with one that failed."""
    torch.manual_seed(0)
    assert has_kernels(torch.zeros(1, 2, device=DEVICE))
    yield
    assert not triton.failures


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows count as long from 65 scores on, in tiles of 128, with lists of 32 candidates."""
    monkeypatch.setattr(triton, "_REGISTERS", 64 * 4)
    monkeypatch.setattr(triton, "_TILE", 128 * 4)
    monkeypatch.setattr(triton, "_ROOM", 32)
    monkeypatch.setattr(triton, "short_rows", triton.short_rows.__wrapped__)  # without its cache


def some(rows: int, n: int, spread: float = 1.0, dtype: torch.dtype = torch.float32) -> Tensor:
    return (torch.randn(rows, n, dtype=torch.float64) * spread).to(DEVICE, dtype)


def close(scores: Tensor, alpha: float) -> None:
    """Float64's values within a few units in the last place times the support, and its zeros."""
    result, oracle = entmax(scores, alpha), entmax_oracle(scores, alpha)
    allowed = torch.finfo(result.dtype).eps * (16 + (oracle > 0).sum(-1, keepdim=True))
    assert ((result - oracle).abs() <= allowed * oracle.amax(-1, keepdim=True)).all()
    assert ((result.double().sum(-1, keepdim=True) - 1).abs() <= allowed).all()
    assert (result[oracle > 1e-5] > 0).all()
    if alpha > 1:
        beyond = scores < scores.amax(-1, keepdim=True) - 1.001 / (alpha - 1)
        assert (result[beyond] == 0).all()


def close_logs(scores: Tensor, alpha: float) -> None:
    """Logarithms of the same, and -inf for what is 0."""
    logs, oracle = log_entmax(scores, alpha), entmax_oracle(scores, alpha)
    allowed = torch.finfo(logs.dtype).eps * (64 + 4 * (oracle > 0).sum(-1, keepdim=True))
    assert ((logs.double().exp() - oracle).abs() <= allowed).all()
    assert (logs[oracle > 1e-5] > -INF).all()
    if alpha > 1:
        assert (logs[scores < scores.amax(-1, keepdim=True) - 1.001 / (alpha - 1)] == -INF).all()


def spreads(n: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Rows from nearly uniform to peaked, and one that is masked."""
    rows = torch.cat([some(1, n, spread, dtype) for spread in (0.1, 1.0, 4.0, 1.0)])
    rows[3, 1 : n // 2] = -INF
    return rows


@pytest.mark.parametrize("alpha", ALPHAS)
def test_values(alpha: float) -> None:
    for length in (1, 13, 776):
        close(spreads(length), alpha)


@pytest.mark.parametrize(
    ("alpha", "dtype"),
    [
        *((alpha, torch.float32) for alpha in ALPHAS[:-1]),
        pytest.param(3.0, torch.float32, marks=slow),
        (1.5, torch.float64),
    ],
)
def test_values_of_long_rows(small: None, alpha: float, dtype: torch.dtype) -> None:
    """With room for the candidates, and without (the first row)."""
    scores = spreads(140, dtype)
    close(scores, alpha)
    close_logs(scores, alpha)


def test_values_of_long_rows_in_whole_tiles() -> None:
    """With lists of candidates, for scores of spread 1 at alpha 1.5, and without at 1.2."""
    scores = some(2, 9000)
    for alpha in (1.2, 1.5):
        close(scores, alpha)
        z, index = scores.clone().requires_grad_(), torch.tensor([5, 8999], device=DEVICE)
        loss = entmax_loss(z, index, alpha)
        target = torch.nn.functional.one_hot(index, 9000).double()
        assert torch.allclose(loss.double(), loss_oracle(scores, target, alpha).mean(), 1e-6)
        (gradient,) = torch.autograd.grad(loss, z)
        expected = (entmax_oracle(scores, alpha) - target) / 2
        assert torch.allclose(gradient.double(), expected, rtol=0, atol=4e-6)


ROWS = {
    "equal": torch.zeros(80),
    "one huge": torch.tensor([0.0, 1e30, 0.0, 5.0]),
    "huge offset": torch.randn(40, generator=torch.Generator().manual_seed(1)) + 1e5,
    "ties at the threshold": torch.tensor([1.0, 1.0, 0.0, 0.0, -1.0, -1.0]),
    "tied leaders": torch.tensor([2.0, 2.0, 2.0, -5.0]),
    "subnormal": torch.tensor([1e-40, -1e-40, 0.0, 3e-42]),
    "-inf": torch.tensor([-INF, 0.3, -INF, 0.1]),
    "-inf for a tile": torch.cat([torch.full((130,), -INF), torch.arange(70) / 9]),
    "one finite": torch.tensor([-INF, 7.0, -INF]),
    "masked": torch.full((9,), -1e18),
    "partly masked": torch.tensor([0.5, -1e18, 0.2, -1e18]),
    "outlier": torch.cat([torch.zeros(199), torch.tensor([1.5])]),
}


@pytest.mark.parametrize(
    ("alpha", "long"),
    [*((alpha, False) for alpha in ALPHAS), (1.2, True), (1.33, True), (1.5, True), (2.0, True)],
)
def test_adversarial_rows(alpha: float, long: bool, request: pytest.FixtureRequest) -> None:
    """All in one batch, filled up with -inf."""
    if long:
        request.getfixturevalue("small")
    scores = torch.full((len(ROWS), 200), -INF)
    for row, adverse in zip(scores, ROWS.values(), strict=True):
        row[: len(adverse)] = adverse
    close(scores.to(DEVICE), alpha)
    if alpha in (1.2, 1.5):
        close_logs(scores.to(DEVICE), alpha)


@pytest.mark.parametrize("alpha", [1.05, 1.5])
@pytest.mark.parametrize("length", [7, 200])
def test_nan_stays_in_its_row_and_rows_without_answer_are_nan(
    small: None, alpha: float, length: int
) -> None:
    scores = some(4, length)
    clean = entmax(scores, alpha)
    scores[1, 3], scores[2] = float("nan"), -INF
    result = entmax(scores, alpha)
    assert result[1].isnan().any()
    assert result[2].isnan().any()
    assert torch.equal(result[[0, 3]], clean[[0, 3]])
    index = torch.zeros(4, dtype=torch.int64, device=DEVICE)
    losses = entmax_loss(scores, index, alpha, reduction="none")
    assert losses.isnan().tolist() == [False, True, True, False]


def value_and_gradients(scores: Tensor, alpha: float | Tensor, weights: Tensor) -> list[Tensor]:
    z = scores.detach().requires_grad_()
    inputs = [z]
    if isinstance(alpha, Tensor):
        alpha = alpha.detach().requires_grad_()
        inputs.append(alpha)
    result = entmax(z, alpha)
    first = torch.autograd.grad((result * weights).sum(), inputs)
    again = torch.autograd.grad((entmax(z, alpha) * weights).sum(), z, create_graph=True)[0]
    return [result.detach(), *first, *torch.autograd.grad(again.square().sum(), z)]


@pytest.mark.parametrize("alpha", ALPHAS_SLOW_AT_3[1:])
@pytest.mark.parametrize(
    ("length", "dtype"), [(1, torch.float32), (13, torch.float64), (200, torch.float32)]
)
def test_gradients_equal_those_of_pytorch(
    small: None, alpha: float, length: int, dtype: torch.dtype
) -> None:
    scores, weights = some(5, length, 2.0, dtype), some(5, length, 1.0, dtype)
    if length > 2:
        scores[0, ::3] = -INF
    ours = value_and_gradients(scores, alpha, weights)
    with in_pytorch():
        expected = value_and_gradients(scores.double(), alpha, weights.double())
    for one, other in zip(ours, expected, strict=True):
        scale = other.abs().amax(-1, keepdim=True).clamp_min(1.0)
        close_enough = 1e-10 if dtype == torch.float64 else 2e-5
        # Above 2 the large weights of small probabilities magnify rounding errors.
        assert ((one - other).abs() <= close_enough * scale * (50 if alpha > 2 else 1)).all()


@pytest.mark.parametrize("length", [13, pytest.param(100, marks=slow)])
def test_alpha_of_each_head(small: None, length: int) -> None:
    scores, weights = some(5, length, 2.0).view(1, 5, 1, -1), some(5, length).view(1, 5, 1, -1)
    alpha = torch.tensor([1.0, 1.02, 1.5, 2.0, 2.6], device=DEVICE).view(5, 1, 1)
    ours = value_and_gradients(scores, alpha, weights)
    for head, number in enumerate(alpha.flatten().tolist()):
        alone = entmax_oracle(scores[:, head], number)
        assert torch.allclose(ours[0][:, head].double(), alone, rtol=0, atol=1e-6)
    with in_pytorch():
        expected = value_and_gradients(scores.double(), alpha.double(), weights.double())
    for one, other in zip(ours[1:3], expected[1:3], strict=True):
        assert torch.allclose(one.double(), other, rtol=1e-3, atol=1e-4)


def test_alphas_above_two_among_many_rows() -> None:
    """A program looks for them in several tiles, of which the last has fewer rows."""
    alpha = torch.linspace(1.1, 1.9, 70, device=DEVICE).view(-1, 1)
    alpha[[3, 40, 69]] = 2.5
    scores = some(70, 50)
    ours = entmax(scores, alpha)
    for row in (2, 3, 40, 68, 69):
        alone = entmax_oracle(scores[row : row + 1], float(alpha[row]))
        assert torch.allclose(ours[row : row + 1].double(), alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize("length", [7, pytest.param(100, marks=slow)])
def test_gradients_above_two(small: None, length: int) -> None:
    """One alpha a row, on both sides of 2, up to where Jacobian weights are infinite."""
    alpha = torch.tensor([1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 20.0], device=DEVICE).view(-1, 1)
    scores, arriving = some(70, length), some(70, length)
    scores, alpha = scores / alpha.repeat(10, 1), alpha.repeat(10, 1)
    scores[:, 5:] -= 50.0
    probabilities = entmax(scores, alpha)
    found = triton.scores_gradient(probabilities, alpha, arriving, torch.float32)
    expected = scores_gradient(probabilities, alpha, arriving)
    assert expected.isfinite().all()
    scale = expected.abs().amax(1, keepdim=True)
    assert ((found - expected).abs() <= 1e-4 * scale).all()


@pytest.mark.parametrize("alpha", [1.0, *ALPHAS_SLOW_AT_3])
@pytest.mark.parametrize(("length", "smoothing"), [(1, 0.0), (13, 0.1), (200, 0.0)])
def test_losses(
    alpha: float, length: int, smoothing: float, request: pytest.FixtureRequest
) -> None:
    """Values of the oracle; gradient = entmax minus target, 0 where the target is ignored."""
    if length == 200:
        request.getfixturevalue("small")
    scores = spreads(length)[[0, 1, 1, 2]].requires_grad_()
    index = torch.randint(length, (4,), device=DEVICE)
    target = torch.nn.functional.one_hot(index, length).double()
    target = target * (1 - smoothing) + smoothing / length
    index[2] = -100
    losses = entmax_loss(scores, index, alpha, reduction="none", label_smoothing=smoothing)
    kept = index >= 0
    expected = loss_oracle(scores, target, alpha)
    assert torch.allclose(losses[kept].double(), expected[kept], 1e-5, 4e-6)
    assert losses[2] == 0
    (grad,) = torch.autograd.grad(losses.sum(), scores)
    expected = torch.where(kept.unsqueeze(1), entmax_oracle(scores, alpha) - target, 0.0)
    assert torch.allclose(grad.double(), expected, rtol=0, atol=4e-6)


@pytest.mark.parametrize("alpha", [1.0, 1.05, 1.33, 2.0])
@pytest.mark.parametrize("long", [False, pytest.param(True, marks=slow)])
def test_losses_of_classes_equal_those_of_pytorch(
    alpha: float, long: bool, request: pytest.FixtureRequest
) -> None:
    """Every reduction, class weights and label smoothing, with the gradient; all of it in bf16."""
    if long:
        request.getfixturevalue("small")
    n = 140 if long else 13
    scores, index = some(4, n, 2.0), torch.randint(n, (4,), device=DEVICE)
    index[2] = -1
    weight, arriving = torch.rand(n, device=DEVICE), some(4, 1)[:, 0]
    for reduction, weights, smoothing in (
        ("none", None, 0.1),
        ("sum", weight, 0.0),
        ("mean", None, 0.0),
        ("mean", weight, 0.2),
    ):
        up = arriving if reduction == "none" else arriving[0]

        def both(z: Tensor, up: Tensor = up, **options: object) -> tuple[Tensor, Tensor]:
            z = z.detach().requires_grad_()
            loss = entmax_loss(z, index, alpha, ignore_index=-1, **options)
            return loss.detach(), torch.autograd.grad(loss, z, up.to(loss.dtype))[0]

        options = {"reduction": reduction, "label_smoothing": smoothing}
        # A GPU compiles kernels for each type and each set of options.
        in_half = weights is not None and smoothing > 0
        for dtype in (torch.float32, *([torch.bfloat16] if in_half else [])):
            ours = both(scores.to(dtype), weight=weights, **options)
            with in_pytorch():
                of_classes = None if weights is None else weights.double()
                expected = both(scores.to(dtype).double(), weight=of_classes, **options)
            allowed = 4e-6 if dtype == torch.float32 else 0.01
            for one, other in zip(ours, expected, strict=True):
                assert one.dtype == dtype
                assert (one - other).abs().max() <= allowed * (1 + other.abs().max())


def test_losses_of_other_shapes_and_targets_that_are_no_class() -> None:
    scores, index = some(2, 60).view(2, 5, 3, 4).requires_grad_(), torch.ones(2, 3, 4).long()
    index = index.to(DEVICE)
    losses = entmax_loss(scores, index, reduction="none")
    expected = entmax_loss(scores.movedim(1, -1).reshape(-1, 5), index.flatten(), reduction="none")
    assert losses.shape == index.shape
    assert torch.equal(losses.flatten(), expected)
    assert entmax_loss(scores[0, :, 0, 0], index[0, 0, 0]).dim() == 0
    ignored = entmax_loss(scores, index, ignore_index=1)
    assert ignored == 0
    assert not torch.autograd.grad(ignored, scores)[0].any()
    if DEVICE == "cuda":
        assert entmax_loss(scores, index + 4).isnan()
    else:
        with pytest.raises(ValueError, match="target 5 is not a class from 0 to 4"):
            entmax_loss(scores, index + 4)


@pytest.mark.parametrize("n", [40, 140])
def test_learned_alpha_is_exact_in_float32(small: None, n: int) -> None:
    """Near 1 too, with one alpha for each head, and its gradient."""
    numbers = [1.0, 1.0001, 1.02, 1.3, 1.5, 2.0]
    alpha = torch.tensor(numbers, device=DEVICE).view(-1, 1, 1)
    scores = torch.cat([some(6, n, spread) for spread in (0.1, 1.0, 5.0)]).view(3, 6, 1, n)
    arriving = some(18, n).view_as(scores)
    outcomes = []
    for dtype in (torch.float32, torch.float64):
        z, a = (x.to(dtype, copy=True).requires_grad_() for x in (scores, alpha))
        with nullcontext() if dtype == torch.float32 else in_pytorch():
            p = entmax(z, a)
            outcomes.append([p.detach(), *torch.autograd.grad(p, (z, a), arriving.to(dtype))])
    (p, of_scores, of_alpha), (p64, of_scores64, of_alpha64) = outcomes
    assert (p - p64).abs().max() <= 2e-6
    assert ((of_scores - of_scores64).abs() <= 1e-4 * of_scores64.abs().amax(-1, True)).all()
    assert ((of_alpha - of_alpha64).abs() <= 1e-4 * of_alpha64.abs().clamp_min(0.1)).all()


@slow
def test_loss_beside_distributions_weights_and_alpha_of_rows() -> None:
    weight, index = torch.rand(30, device=DEVICE), torch.tensor([4, 0, 29, 7], device=DEVICE)
    alpha = torch.tensor([[1.0], [1.3], [2.0], [2.5]], device=DEVICE, requires_grad=True)
    target = torch.rand(4, 30, device=DEVICE).softmax(1)
    outcomes = []
    scores = some(4, 30, 2.0).requires_grad_()

    def everything() -> list[Tensor]:
        loss = entmax_loss(scores, target, alpha) + entmax_loss(scores, index, alpha)
        loss = loss + entmax_loss(scores, index, 1.5, weight, label_smoothing=0.2)
        grads = torch.autograd.grad(loss, (scores, alpha), create_graph=True)
        return [loss, *grads, *torch.autograd.grad(grads[0].square().sum(), scores)]

    outcomes.append(everything())
    with in_pytorch():
        outcomes.append(everything())
    for one, other in zip(*outcomes, strict=True):
        assert torch.allclose(one, other, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("dtype", "alpha"),
    [(torch.float16, 1.5), *((torch.bfloat16, alpha) for alpha in (1.0, 1.05, 1.5, 2.0))],
)
def test_half_types_are_read_as_they_are(dtype: torch.dtype, alpha: float) -> None:
    scores, index = some(4, 30, 3.0, dtype), torch.tensor([1, 2, 3, 4], device=DEVICE)
    exact, result = entmax(scores.float(), alpha), entmax(scores, alpha)
    assert torch.equal(result, exact.to(dtype).where((exact == 0) | (exact.to(dtype) > 0), result))
    assert alpha == 1 or torch.equal(result > 0, exact > 0)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        assert torch.equal(entmax(scores, alpha), entmax(scores.float(), alpha))
    gradients = []
    for given in (scores, scores.float()):
        z = given.detach().requires_grad_()
        loss = entmax_loss(z, index, alpha, label_smoothing=0.1)
        assert loss.dtype == given.dtype
        (loss.float() + entmax(z, alpha)[:, 3].float().sum()).backward()
        gradients.append(z.grad.float())
    assert torch.allclose(*gradients, rtol=0.02, atol=0.01)


def test_thresholds_mean_what_they_mean_in_pytorch() -> None:
    """A kernel may fail between the forward and the backward pass."""
    scores = some(4, 60)
    for alpha in ALPHAS:
        solved = backend_for(scores, alpha).conjugate(scores, alpha)
        with in_pytorch():
            expected = backend_for(scores, alpha).conjugate(scores, alpha)
        for one, other in zip(solved[:3], expected[:3], strict=True):
            assert torch.allclose(one.double(), other.double(), atol=4e-6)


def test_output_layer() -> None:
    layer = OutputLayer(6, 50).to(DEVICE)
    hidden, target = some(7, 6), torch.randint(50, (7,), device=DEVICE)
    outcomes = []
    for _ in range(2):
        layer.zero_grad()
        out = layer.loss(hidden, target, -100, 0.1)
        out.loss.backward()
        outcomes.append([out.loss.detach(), out.support, layer.weight.grad, layer.bias.grad])
        with in_pytorch():
            out = layer.loss(hidden, target, -100, 0.1)
    for one, other in zip(outcomes[0], outcomes[1], strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    assert torch.allclose(out.loss, outcomes[0][0], atol=1e-4)


@pytest.mark.parametrize(
    "alpha", [1.5, pytest.param(1.0, marks=slow), pytest.param(1.05, marks=slow)]
)
def test_whole_graphs_call_the_kernels(alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    index = torch.tensor([0, 3, 9], device=DEVICE)
    calls = []
    for name in ("probabilities", "conjugate", "class_losses"):
        kernel = getattr(triton, name)
        monkeypatch.setattr(
            triton, name, lambda *given, k=kernel, n=name: (calls.append(n), k(*given))[1]
        )

    def several(z: Tensor) -> Tensor:
        return entmax(z * 2, alpha).square().sum() + entmax_loss(z, index, alpha)

    scores = some(3, 20)
    outcomes = []
    for function in (several, torch.compile(several, fullgraph=True, backend="aot_eager")):
        z = scores.clone().requires_grad_()
        calls.clear()
        function(z).backward()
        assert "conjugate" in calls or "class_losses" in calls
        assert ("probabilities" in calls) == (alpha != 1)
        outcomes.append(z.grad)
    assert torch.allclose(*outcomes, atol=1e-5)


def test_a_kernel_that_fails_is_replaced_after_one_warning(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("no compiler")

    assert kernels_start(torch.device(DEVICE))
    monkeypatch.setattr(triton, "_solve", broken)
    scores = some(3, 20).to(torch.bfloat16).requires_grad_()
    for alpha in (1.5, 1.2, torch.full((3, 1), 1.7, device=DEVICE)):
        result = entmax(scores, alpha)
        result.sum().backward()
        number = alpha if isinstance(alpha, float) else 1.7
        assert torch.allclose(result.double(), entmax_oracle(scores, number), atol=4e-3)
    assert entmax_loss(scores, torch.tensor([0, 1, 2], device=DEVICE)).isfinite()
    assert [str(w.message) for w in recwarn if "no compiler" in str(w.message)] == [
        "the GPU kernels of entmax cannot be used, PyTorch does their work, slower: no compiler"
    ]
    assert not kernels_start(torch.device(DEVICE))
    triton.failures.clear()


@pytest.mark.parametrize("forward", [True, False])
def test_a_loss_kernel_that_fails_is_replaced(
    forward: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the forward pass, or only in the backward pass."""

    def broken(*arguments: object) -> None:
        raise RuntimeError("no compiler")

    index = torch.tensor([0, -100, 2], device=DEVICE)
    scores = some(3, 20).requires_grad_()
    if forward:
        monkeypatch.setattr(triton, "_loss_arguments", broken)
        with pytest.warns(RuntimeWarning, match="no compiler"):
            loss = entmax_loss(scores, index, label_smoothing=0.1)
    else:
        loss = entmax_loss(scores, index, label_smoothing=0.1)
        monkeypatch.setattr(triton, "_loss_arguments", broken)
    with nullcontext() if forward else pytest.warns(RuntimeWarning, match="no compiler"):
        (gradient,) = torch.autograd.grad(loss, scores)
    z = scores.detach().double().requires_grad_()
    expected = entmax_loss(z, index, label_smoothing=0.1)
    assert abs(float(loss - expected)) <= 4e-6
    assert torch.allclose(gradient.double(), torch.autograd.grad(expected, z)[0], atol=4e-6)
    triton.failures.clear()
