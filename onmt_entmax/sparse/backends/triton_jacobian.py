"""Two functions of probabilities, for gradients: Jacobian weights, and terms for alpha.

These are functions of Triton, for use in kernels. triton_curves.py has the symbols,
`derivatives.gradients` the formulas.
"""

# mypy: allow-untyped-defs

import triton
import triton.language as tl


@triton.jit
def jacobian_weights(probability, beta, power: tl.constexpr):
    """Return ``s = p ** (2 - alpha)``, 0 outside the support.

    ``power`` is `Form.jacobian_power`: ``1 / beta`` if that is a whole number, else `NO_POWER`.
    """
    if power == 1:
        return tl.where(probability == 0, 0.0, 1.0).to(probability.dtype)
    if power == 2:
        return tl.sqrt(probability)
    inside = tl.where(probability == 0, 1.0, probability)
    return tl.where(probability == 0, 0.0, tl.exp((1.0 - beta) * tl.log(inside)))


@triton.jit
def alpha_terms(probability, weight, beta):
    """Return the terms t of the gradient with respect to alpha, 0 outside the support.

    A term is ``p k``, with k of `derivatives.curvature`. ``weight`` are the Jacobian weights.
    """
    logs = tl.log(tl.where(probability == 0, 1.0, probability))
    w = -beta * logs
    near = w < 1.0
    small = tl.where(near, w, 0.0)
    # (e^w - 1 - w) 2 / w^2 = 1 + w/3 (1 + w/4 (1 + ...)), to w/12: the rest is about 2 / 13!, or
    # 3e-10. In float64, this is the largest error of a gradient with respect to alpha.
    series = 1.0 + small * (1.0 / 12)
    for k in tl.static_range(1, 10):
        series = 1.0 + small * series * (1.0 / (12 - k))
    inverse = 1.0 / tl.where(beta == 0, 1.0, beta)
    # p exp(w) is the weight.
    far = (weight - probability * (1.0 + w)) * inverse * inverse
    return tl.where(near, probability * logs * logs * (series * 0.5), far)
