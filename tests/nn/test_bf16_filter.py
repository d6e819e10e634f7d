"""Candidate filtering in bfloat16: no member of the support is lost, and results are exact."""

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.nn import bf16_filter, linear_loss
from onmt_entmax.nn.bf16_filter import Bf16Filter, is_worthwhile, scores_at
from onmt_entmax.nn.output import OutputLayer, PreparedOutput
from onmt_entmax.sparse.backends import Backend, backend_for
from onmt_entmax.sparse.functional import entmax_loss, log_entmax
from tests.nn.test_output_support import check_equal, layer_and_states

fast_bfloat16 = pytest.mark.skipif(
    not bf16_filter.has_fast_bfloat16(), reason="the processor has no products in bfloat16"
)


@fast_bfloat16
@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 2.5])
@pytest.mark.parametrize(("size", "scale"), [(64, 30.0), (500, 8.0), (1100, 6.0)])
def test_the_filter_keeps_the_whole_support(alpha: float, size: int, scale: float) -> None:
    """Norms vary widely, and some tokens differ by exactly one rounding."""
    torch.manual_seed(size)
    weight = torch.randn(6000, size) * torch.rand(6000, 1) * 3 / size**0.5
    weight[1::2] = weight[::2] + 2.0**-9 * weight[::2].abs()
    bias = torch.randn(6000)
    hidden = torch.tanh(torch.randn(150, size)) * scale * torch.rand(150, 1)
    found = Bf16Filter(weight, bias, alpha).candidates(hidden[hidden.norm(dim=1) > scale])
    states = hidden[hidden.norm(dim=1) > scale]
    scores = states.double() @ weight.double().t() + bias.double()
    inside = log_entmax(scores, alpha) > -torch.inf
    if found is None:
        assert inside.sum(1).max() > 8
        return
    assert torch.isin(inside.flatten().nonzero().squeeze(1), found.position).all()
    exact = scores.flatten()[found.position]
    assert torch.allclose(found.scores.flatten()[found.slot].double(), exact, rtol=1e-5, atol=1e-4)


@fast_bfloat16
def test_the_error_bound_holds_on_random_scores() -> None:
    """Every bfloat16 score near the largest is within the bound of that in float64."""
    for seed, size in enumerate([7, 64, 500, 2048]):
        torch.manual_seed(seed)
        weight, bias = torch.randn(4000, size) * 0.1, 3 * torch.randn(4000)
        hidden = torch.randn(64, size) * torch.logspace(-3, 2, 64).unsqueeze(1)
        bf16 = Bf16Filter(weight, bias, 1.5)
        rounded = bf16._product(hidden).add_(bias)
        exact = hidden.double() @ weight.double().t() + bias.double()
        maxima = rounded.amax(1, True)
        near = rounded >= maxima - 2
        error = torch.where(near, (rounded - exact).abs(), 0.0).amax(1, True)
        bound = bf16._score_error(hidden, maxima)
        assert (error <= bound).all()
        assert bound[54:].median() < 60 * error[54:].median(), "the bound is useless"


def adversary(term: str, level: float) -> tuple[Tensor, Tensor, Tensor, float]:
    """Return a state, weights and biases for which one term of the error bound is nearly attained.

    Rounding raises the score of token 700 by about the bound, and lowers that of token 300 by as
    much. In exact arithmetic token 700 is `0.98 * level` above token 300, so both are in the
    support. All other tokens lie far below.

    Returns:
        State ``(1, n)``, weights ``(1024, n)``, biases ``(1024,)``, and the least gap between the
        two rounded scores that makes the case adversarial.
    """
    n = 128
    sign, ones = torch.ones(n), torch.ones(n)
    sign[1::2] = -1
    lost = 0.99 * 2.0**-8  # just under half a unit of 1.5 in bfloat16
    hidden, weight = torch.zeros(1, n), torch.zeros(1024, n)
    bias = torch.full((1024,), -16.0 * level)
    if term == "state":  # h = 1.5 s + lost rounds to 1.5 s, orthogonal to both tokens
        hidden[0], weight[300], weight[700] = 1.5 * sign + lost, 16 * ones, -16 * ones
        error = 16 * n * lost
    elif term == "weights":  # the same with the roles exchanged
        hidden[0], weight[300], weight[700] = 16 * ones, 1.5 * sign + lost, 1.5 * sign - lost
        error = 16 * n * lost
    elif term == "result":  # 257 rounds to 256, and 259 to 260
        hidden[0, :2] = torch.tensor([16.0, 1.0])
        weight[300, :2], weight[700, :2] = torch.tensor([[16.0, 1.0], [16.0, 3.0]])
        error = 1.0
    else:  # float32 sums lose every 1 between 2 ** 26 and its negative
        weight[300] = 1.0
        hidden[0] = 1.0
        hidden[0, [0, -1]] = 2.0**13
        weight[300, 0], weight[300, -1] = 2.0**13, -(2.0**13)
        bias[:] = -1e4  # this term's bound is for the worst order of summation, and so large
        error = 0.4 * (n - 2)
    exact = (weight[[300, 700]].double() @ hidden[0].double()).float()
    bias[[300, 700]] = -exact
    bias[300] -= 0.98 * level
    return hidden, weight, bias, 2 * error + 0.98 * level - 1e-2 * error


@fast_bfloat16
@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("term", ["state", "weights", "result", "sums"])
def test_the_filter_keeps_tokens_at_the_error_bound(term: str, alpha: float) -> None:
    """Fails if the margin is smaller, or lacks one of its terms."""
    level = 1 / (alpha - 1)
    hidden, weight, bias, least_gap = adversary(term, level)
    scores = hidden.double() @ weight.double().t() + bias.double()
    inside = (log_entmax(scores, alpha)[0] > -torch.inf).nonzero().squeeze(1)
    assert inside.tolist() == [300, 700]
    bf16 = Bf16Filter(weight, bias, alpha)
    rounded = (bf16._product(hidden) + bias)[0]
    gap = float(rounded[700] - rounded[300])
    assert gap > least_gap
    found = bf16.candidates(hidden)
    assert found is not None
    assert found.position.tolist() == [300, 700]
    if term != "sums":
        margin = 2 * float(bf16._score_error(hidden, rounded.amax().view(1, 1)))
        assert margin < 1.1 * (gap - 0.98 * level), "the case is not adversarial"


@fast_bfloat16
def test_the_rounding_of_a_score_near_the_threshold_counts_if_the_largest_is_zero() -> None:
    """Fails if the bound takes products near the largest score for products of its size.

    Without biases, and with a largest score of 0, the product of a score at the threshold is of
    size 1 / (alpha - 1), and rounding it can lower it below a threshold that it is above.
    """
    half = 2.0**-8  # of the distance of neighbours in bfloat16 between 1 and 2
    weight = torch.full((1024, 2), -8.0)
    weight[700] = 0.0
    for second in (torch.arange(192) / 128).tolist():  # a score of -second moves the threshold
        threshold = -(second + (8 - second**2) ** 0.5) / 2
        middle = (threshold // half + 1) * half
        if middle / half % 2 and 0.1 * half < middle - threshold < 0.9 * half:
            break
    weight[500] = torch.tensor([-second, 0.0])
    weight[300] = torch.tensor([middle + half, -half * 65 / 64])
    bf16 = Bf16Filter(weight, torch.zeros(1024), 1.5)
    hidden = torch.ones(1, 2)
    assert bf16._product(hidden)[0, 300] == middle - half < threshold
    inside = log_entmax(hidden @ weight.t(), 1.5)[0] > -torch.inf
    assert inside.nonzero().squeeze(1).tolist() == [300, 500, 700]
    found = bf16.candidates(hidden)
    assert found is not None
    assert found.position.tolist() == [300, 500, 700]


@fast_bfloat16
@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_a_filtered_search_step_is_exact(alpha: float, monkeypatch) -> None:
    monkeypatch.setattr(bf16_filter, "_LEAST_WEIGHTS", 1)
    layer, hidden = layer_and_states(5000, alpha, 25.0)
    layer.bias.zero_()
    assert is_worthwhile(layer.weight, alpha)
    output = PreparedOutput(layer.weight, layer.bias, alpha)
    assert output._filter.candidates(hidden) is not None
    check_equal(output(hidden), layer.scores(hidden), alpha)
    flat = output(0 * hidden)  # too many candidates: the filter pauses
    paused = output._pause
    assert paused > 0
    output(hidden)
    assert output._pause == paused - 1
    whole = flat if isinstance(flat, Tensor) else flat.dense()
    expected = log_entmax(layer.scores(0 * hidden), alpha)
    assert torch.allclose(whole.exp(), expected.exp(), atol=1e-6)
    output.begin()
    fresh = PreparedOutput(layer.weight, layer.bias, alpha)(hidden)
    assert all(map(torch.equal, output(hidden)[2:], fresh[2:]))  # to the last bit


@fast_bfloat16
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_a_filtered_loss_is_exact(alpha: float, smoothing: float, monkeypatch) -> None:
    """Loss, counts and gradients in float32, filtered and not, against float64."""
    used = []

    def counting(*arguments: Tensor) -> Tensor:
        used.append(len(arguments[0]))
        return scores_at(*arguments)

    monkeypatch.setattr(bf16_filter, "_LEAST_WEIGHTS", 1)
    monkeypatch.setattr(linear_loss, "scores_at", counting)
    monkeypatch.setattr(linear_loss, "_GROUP_SCORES", 5000 * 60)
    monkeypatch.setattr(linear_loss, "_GROUP_ROWS", 60)
    monkeypatch.setattr(linear_loss, "_LEAST_FILTERED_ROWS", 100)
    layer, hidden = layer_and_states(5000, alpha, 25.0)
    target = layer.scores(hidden).argmax(1)
    target[::5] = 7
    layer.requires_grad_().weight.grad = None
    layer.prior = torch.rand(5000)
    layer.prior /= layer.prior.sum()
    tensors = (hidden.requires_grad_(), layer.weight, layer.bias)
    result = layer.loss(hidden, target, -100, smoothing)
    assert used == [60] * 4  # all but the first of five groups
    gradients = torch.autograd.grad(result.loss, tensors)
    doubles = [tensor.detach().double().requires_grad_() for tensor in tensors]
    scores = doubles[0] @ doubles[1].t() + doubles[2]
    spread = smoothing * layer.prior.double()
    wanted = (1 - smoothing) * nn.functional.one_hot(target, 5000) + spread
    loss = entmax_loss(scores, wanted, alpha, reduction="sum")
    assert torch.allclose(result.loss.double(), loss, rtol=2e-5)
    assert result.correct == (scores.argmax(1) == target).sum()
    support = (log_entmax(scores, alpha) > -torch.inf).sum()
    assert abs(result.support - support) <= 1
    for single, double in zip(gradients, torch.autograd.grad(loss, doubles), strict=True):
        assert (single.double() - double).abs().max() <= 5e-5 * double.abs().max()


@fast_bfloat16
@pytest.mark.parametrize(("alpha", "flat"), [(1.34, 1 / 9), (1.5, 1 / 32), (2.0, 0.0)])
def test_peaked_rows_beside_a_flat_one_keep_their_gradients(
    alpha: float, flat: float, monkeypatch
) -> None:
    """The flat row's many candidates make the others look like small supports of long rows."""
    monkeypatch.setattr(bf16_filter, "_LEAST_WEIGHTS", 1)
    monkeypatch.setattr(linear_loss, "_GROUP_SCORES", 5000 * 60)
    monkeypatch.setattr(linear_loss, "_GROUP_ROWS", 60)
    monkeypatch.setattr(linear_loss, "_LEAST_FILTERED_ROWS", 100)
    torch.manual_seed(0)
    layer, hidden = OutputLayer(64, 5000, alpha), torch.randn(300, 64)
    with torch.no_grad():
        layer.weight.normal_()
        layer.bias.copy_(torch.where(torch.arange(5000) % 25 == 0, 0.0, -1.0))
        hidden[torch.arange(300) % 60 != 40] *= 8
        hidden[torch.arange(300) % 60 == 40] *= flat
    tensors = (hidden.requires_grad_(), layer.weight, layer.bias)
    target = torch.randint(5000, (300,))
    widths, found = [], []

    def spying(scores: Tensor, *more: object) -> Backend:
        widths.append(scores.shape[1])
        return backend_for(scores, *more)

    monkeypatch.setattr(linear_loss, "backend_for", spying)
    for filtered in (True, False):
        monkeypatch.setattr(linear_loss, "is_worthwhile", lambda *given, yes=filtered: yes)
        result = layer.loss(hidden, target, -100)
        found.append((result, torch.autograd.grad(result.loss, tensors)))
    assert all(64 <= width < 5000 for width in widths[1:5]), widths  # filtered, and long
    assert abs(found[0][0].support - found[1][0].support) <= 1
    for one, other in zip(found[0][1], found[1][1], strict=True):
        assert (one - other).abs().max() <= 5e-5 * other.abs().max()
