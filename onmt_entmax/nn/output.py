"""The loss of an output layer as one autograd function with the linear layer.

Scores are made for some rows at a time, in memory that is used again; what stays of them is the
support. Since the gradient in the scores is 0 outside it (but for the target), the gradients of
states and weights are sparse products. Rows whose support is large take the dense products at once,
while their scores are still there.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional

from onmt_entmax.nn.bf16_filter import Screen, pays, scores_at
from onmt_entmax.nn.products import PreparedWeight, product, weight_gradient
from onmt_entmax.sparse.arguments import valid_alpha
from onmt_entmax.sparse.conjugate import (
    WHOLE,
    Conjugate,
    conjugate,
    row_groups,
    write_probabilities,
)
from onmt_entmax.sparse.functional import log_entmax
from onmt_entmax.sparse.solvers import (
    Candidates,
    has_power_form,
    lower_bound,
    nonzero,
    select,
    solve_log,
    solve_power,
)

# The output layer in a search: log-probabilities of what is in the support, and of nothing else.
#
# A trained model leaves a few tokens of tens of thousands, and a search asks for no others. So the
# logarithms of the rest are never made: the scores of some rows are searched for what lies above a
# lower bound of the threshold, and given up.

# From so many scores on, looking for the support costs less than all logarithms. Scores that are
# held at once: less than 32 MB that are given up are used again for the next ones.
# For so many groups of rows no screen is tried after one that found too much.
_LEAST = 1 << 16
_DECODING_SCORES = 1 << 22
_PAUSE = 32


class Support(NamedTuple):
    """The tokens of positive probability of some rows."""

    rows: int
    """How many rows there are, those without entries included."""
    vocabulary: int
    """How many tokens there are."""
    row: Tensor
    """(entries,) int64, ascending."""
    token: Tensor
    """(entries,) int64, ascending within a row."""
    log_prob: Tensor
    """(entries,) finite, but for rows whose scores are not"""

    def dense(self) -> Tensor:
        """Log-probabilities (rows, vocabulary), -inf outside the support."""
        whole = self.log_prob.new_full((self.rows, self.vocabulary), -torch.inf)
        whole.view(-1)[self.row * self.vocabulary + self.token] = self.log_prob
        return whole


Distribution = Tensor | Support
"""Log-probabilities of the next token, all (rows, vocabulary) or those of the support."""


def find_support(scores: Tensor, alpha: float) -> Support | None:
    """The support of rows of scores, with log-probabilities as those of `log_entmax`.

    Membership and logarithm come from how far a score is above the threshold. The threshold is
    found on fewer scores than `log_entmax` looks at, so its last bits may differ.

    Args:
        scores: (rows, vocabulary) float32 or float64, contiguous; no autograd.
        alpha: a number > 1.

    Returns:
        None if that is not quicker than all logarithms: of few scores, or a large support.
    """
    if scores.numel() < _LEAST or not (has_power_form(alpha) or alpha > 2):
        return None
    bound = lower_bound(scores, alpha)
    found = None if bound is None else select(scores, *bound)
    if bound is None or found is None:
        return None
    return _solved(found, alpha, scores.shape[1], bound[2])


def _solved(
    found: Candidates, alpha: float, vocabulary: int, start: Tensor | None = None
) -> Support:
    """The support of rows of which the candidates are known; ``start`` as for `solve_power`."""
    if has_power_form(alpha):
        margin = solve_power(found.scores, alpha, start).margin
        values = margin.view(-1)[found.slot].mul_(alpha - 1).log_().div_(alpha - 1)
    else:
        logs = solve_log(found.scores, alpha).log_probabilities
        values = logs.view(-1)[found.slot].to(found.scores.dtype)
    inside = (values != -torch.inf).nonzero().squeeze(1)
    position, row, values = (x[inside] for x in (found.position, found.row, values))
    return Support(len(found.scores), vocabulary, row, position - row * vocabulary, values)


def dense_log_probs(scores: Tensor, alpha: float) -> Tensor:
    """As `log_entmax`, without PyTorch's logarithm of 0: on a CPU it is ten times slower than that
    of other numbers, and zeros are nearly all there is.

    Args:
        scores: (rows, vocabulary); no autograd.
        alpha: a number >= 1.
    """
    if not has_power_form(alpha):
        return log_entmax(scores, alpha)
    rows, vocabulary = scores.shape
    if scores.numel() > WHOLE and rows > 1:  # group by group, in the cache
        whole = torch.empty_like(scores)
        for begin, end in row_groups(0, rows, vocabulary, WHOLE):
            whole[begin:end] = dense_log_probs(scores[begin:end], alpha)
        return whole
    margin = solve_power(scores, alpha).margin.mul_(alpha - 1)
    outside = margin == 0
    logs = margin.masked_fill_(outside, 1.0).log_().div_(alpha - 1)
    return logs.masked_fill_(outside, -torch.inf)


def as_support(log_probs: Tensor) -> Support:
    """What is not -inf in log-probabilities (rows, vocabulary), contiguous; nan is not -inf."""
    rows, vocabulary = log_probs.shape
    position = nonzero(log_probs != -torch.inf)
    row = position // vocabulary
    return Support(rows, vocabulary, row, position - row * vocabulary, log_probs.view(-1)[position])


def join(parts: Sequence[Support]) -> Support:
    """The support of the rows of one or more, one after the other."""
    if len(parts) == 1:
        return parts[0]
    begins = itertools.accumulate((part.rows for part in parts), initial=0)
    row = torch.cat([part.row + begin for part, begin in zip(parts, begins, strict=False)])
    token, log_prob = torch.cat([x.token for x in parts]), torch.cat([x.log_prob for x in parts])
    return Support(sum(x.rows for x in parts), parts[0].vocabulary, row, token, log_prob)


def _log_softmax(scores: Tensor, out: Tensor) -> None:
    """As `log_entmax` with alpha 1, into ``out``."""
    torch.log_softmax(scores, -1, out=out)
    if bool(out[:, 0].isnan().any()):
        log_entmax(scores, 1)  # refuses rows without an answer


class PreparedOutput:
    """An output layer for many steps of a search, with the weights of the moment it was made.

    Args:
        weight: (vocabulary, hidden).
        bias: (vocabulary,).
        alpha: a number >= 1.
    """

    @torch.inference_mode()
    def __init__(self, weight: Tensor, bias: Tensor, alpha: float) -> None:
        self._vocabulary, self._alpha = len(weight), alpha
        self._scores = PreparedWeight(weight, bias)
        self._looks = weight.device.type == "cpu" and alpha > 1
        self._screen = Screen(weight, bias, alpha) if pays(weight, alpha) else None
        self._pause = 0

    def begin(self) -> None:
        """Forget what was seen: answers that were screened are rounded differently, and those from
        here on are not to depend, in their last digits, on those before."""
        self._pause = 0

    @torch.inference_mode()
    def __call__(self, hidden: Tensor) -> Distribution:
        """Log-probabilities of the next token.

        Args:
            hidden: (rows, hidden).

        Returns:
            A `Support` where that is found sooner, else the log-probabilities of all tokens.
        """
        groups = list(row_groups(0, len(hidden), self._vocabulary, _DECODING_SCORES))
        if self._alpha == 1 and len(groups) > 1:
            whole = hidden.new_empty(len(hidden), self._vocabulary)
            for begin, end in groups:
                _log_softmax(self._scores(hidden[begin:end]), whole[begin:end])
            return whole
        if not self._looks:
            return dense_log_probs(self._scores(hidden), self._alpha)
        if not groups:
            return as_support(self._scores(hidden))
        parts = [self._of(hidden[begin:end]) for begin, end in groups]
        supports = [part for part in parts if isinstance(part, Support)]
        if len(supports) == len(parts):
            return join(supports)
        rows = [part.dense() if isinstance(part, Support) else part for part in parts]
        return rows[0] if len(rows) == 1 else torch.cat(rows)

    def _of(self, hidden: Tensor) -> Distribution:
        """As `__call__`, of a few rows."""
        if self._screen is not None and self._pause == 0:
            candidates = self._screen.candidates(hidden)
            if candidates is not None:
                return _solved(candidates, self._alpha, self._vocabulary)
            self._pause = _PAUSE
        self._pause = max(self._pause - 1, 0)
        scores = self._scores(hidden)
        found = find_support(scores, self._alpha)
        return dense_log_probs(scores, self._alpha) if found is None else found


# Scores that are held at once, but at least so many rows, for which the weights are read once; and
# the part of the vocabulary in the support (on average over these rows) below which sparse products
# are faster than dense ones.
_LOSS_SCORES = 1 << 21
_LOSS_ROWS = 128
_SPARSE_BELOW = 1 / 12
# Most members of a support, on average over the last group of rows, for the next to be screened;
# rows that must be left for the preparation to pay.
_SCREENED = 24
_SCREENED_ROWS = 640


class _Sparse(NamedTuple):
    """Entries of a sparse matrix (rows, vocab), by row: all three (k,), the first two int64."""

    row: Tensor
    column: Tensor
    value: Tensor


class LinearLoss(Function):
    """Sum of the losses of a linear layer's scores; see :meth:`OutputLayer.loss`.

    ``apply(hidden, weight, bias, target, alpha, smoothing, spread)`` with every target a row that
    counts, and in ``spread`` (vocab,) what smoothing gives to each token. Returns the loss, and how
    many targets have the largest score and how many probabilities are not zero.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        target: Tensor,
        alpha: float,
        smoothing: float,
        spread: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        needs = any(ctx.needs_input_grad[:3])
        gathered = _Gathered(hidden, weight, bias, needs)
        terms = _Terms(alpha, smoothing, spread)
        loss = hidden.new_zeros(())
        correct, support = (torch.zeros((), dtype=torch.int64, device=hidden.device),) * 2
        may_screen, screen = pays(weight, alpha), None
        groups = list(row_groups(0, len(hidden), len(weight), _LOSS_SCORES, _LOSS_ROWS))
        for begin, end in groups:
            chunk, found = slice(begin, end), None
            # Groups of one size only: oneDNN makes a program for each.
            if screen is not None and end - begin == groups[0][1]:
                found = screen.candidates(hidden[chunk])
                may_screen = found is not None
            if found is None:
                more, right, members = _solve(gathered, target[chunk], terms, begin)
            else:
                more, right, members = _solve_found(gathered, target[chunk], terms, begin, found)
            loss, correct, support = loss + more, correct + right, support + members
            if not may_screen or int(members) > _SCREENED * (end - begin):
                screen = None
            elif screen is None and len(hidden) - end >= _SCREENED_ROWS:
                screen = Screen(weight, bias, alpha)
        ctx.smoothing = smoothing
        if needs:
            saved = (hidden, weight, target, spread, *gathered.dense, *gathered.sparse())
            ctx.save_for_backward(*saved)
        ctx.mark_non_differentiable(correct, support)
        return loss, correct, support

    @staticmethod
    def backward(
        ctx: Any, gradient: Tensor, *unused: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, None, None, None, None]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "OutputLayer.loss has no gradients of gradients (create_graph=True): "
                "use entmax_loss(layer.scores(hidden), target) instead"
            )
        hidden, weight, target, spread, *dense = ctx.saved_tensors
        of_hidden, of_weight, of_bias, *entries = dense
        rows, vocab = len(hidden), len(weight)
        sparse = _Sparse(*entries)
        sparse = sparse._replace(value=sparse.value * gradient)
        own = gradient * (ctx.smoothing - 1)
        hidden_grad = _rows_times(sparse, weight, rows).addcmul_(weight[target], own)
        columns = _Sparse(
            torch.cat([sparse.column, target]),
            torch.cat([sparse.row, torch.arange(rows, device=target.device)]),
            torch.cat([sparse.value, own.expand(rows)]),
        )
        bias_grad = (of_bias * gradient).index_add_(0, columns.row, columns.value)
        order = columns.row.argsort()
        weight_grad = _rows_times(_Sparse(*(part[order] for part in columns)), hidden, vocab)
        if of_weight.numel():
            hidden_grad.addcmul_(of_hidden, gradient)
            weight_grad.addcmul_(of_weight, gradient)
        if spread is not None:
            spread = spread * gradient
            hidden_grad -= spread @ weight
            weight_grad.addr_(spread, hidden.sum(0), alpha=-1)
            bias_grad -= spread * rows
        return hidden_grad, weight_grad, bias_grad, *[None] * 4


class _Terms(NamedTuple):
    """What the loss is made of, as the arguments of :class:`LinearLoss`."""

    alpha: float
    smoothing: float
    spread: Tensor | None


def _solve(
    gathered: "_Gathered", target: Tensor, terms: _Terms, begin: int
) -> tuple[Tensor, Tensor, int | Tensor]:
    """Loss, correct targets and support of the rows from ``begin`` on; nothing of their size stays.

    What their gradient needs is taken in by ``gathered``.
    """
    hidden = gathered.hidden[begin : begin + len(target)]
    scores = product(hidden, gathered.weight, gathered.bias)
    own = scores.gather(1, target.unsqueeze(1))
    solved = conjugate(scores, terms.alpha, part=_SPARSE_BELOW)
    correct = (own == solved.maxima).sum()
    loss = _loss_of(solved, own, terms.smoothing)
    if terms.spread is not None:
        loss -= scores.sum(0) @ terms.spread
    return loss, correct, gathered.add(scores, solved, terms.alpha, begin)


def _solve_found(
    gathered: "_Gathered", target: Tensor, terms: _Terms, begin: int, found: Candidates
) -> tuple[Tensor, Tensor, int]:
    """As :func:`_solve`, of rows of which the candidates are known and no other score."""
    hidden, weight, bias = (
        gathered.hidden[begin : begin + len(target)],
        gathered.weight,
        gathered.bias,
    )
    rows = torch.arange(len(target))
    own = scores_at(hidden, weight, bias, rows, target)
    solved = conjugate(found.scores, terms.alpha, part=0.0)  # no entries needed, which is a hint
    probability = found.scores.new_zeros(found.scores.shape)
    entries = solved.entries
    probability.view(-1).scatter_(0, entries.position, entries.probability)
    for first, last in solved.dense:
        part = slice(first, last)
        write_probabilities(
            found.scores[part],
            terms.alpha,
            solved.maxima[part],
            solved.threshold[part],
            probability[part],
        )
    loss = _loss_of(solved, own.unsqueeze(1), terms.smoothing)
    if terms.spread is not None:
        loss -= hidden.sum(0) @ (terms.spread @ weight) + len(target) * (bias @ terms.spread)
    value = probability.view(-1)[found.slot]
    inside = value.nonzero().squeeze(1)
    row = found.row[inside]
    gathered.add_entries(row, found.position[inside] - row * len(weight), value[inside], begin)
    return loss, (own == solved.maxima.squeeze(1)).sum(), len(inside)


def _loss_of(solved: Conjugate, own: Tensor, smoothing: float) -> Tensor:
    """Sum of the losses of rows whose targets have the scores ``own`` (rows, 1), but for what is
    spread over the vocabulary."""
    leads = solved.maxima - own  # small differences first: they keep their digits
    loss = (solved.excess + (1 - smoothing) * leads.squeeze(1)).sum()
    return loss + smoothing * solved.maxima.sum() if smoothing else loss


class _Gathered:
    """What the gradient of :class:`LinearLoss` needs of the rows seen so far.

    Attributes:
        hidden: (rows, hidden) the states.
        weight: (vocab, hidden).
        bias: (vocab,).
        dense: the gradients in hidden, weight and bias from the dense rows, targets left out; the
            first two empty while there are no dense rows.
    """

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor, needed: bool) -> None:
        self.hidden, self.weight, self.bias, self._needed = hidden, weight, bias, needed
        self._sparse: list[_Sparse] = []
        empty = hidden.new_empty(0)
        self.dense = [empty, empty, hidden.new_zeros(len(weight))]

    def sparse(self) -> _Sparse:
        """The entries of all sparse rows, by row."""
        nowhere = torch.empty(0, dtype=torch.int64, device=self.hidden.device)
        none = _Sparse(nowhere, nowhere, self.hidden.new_empty(0))
        whole = _Sparse(*(torch.cat(p) for p in zip(none, *self._sparse, strict=True)))
        if bool((whole.row.diff() < 0).any()):
            # Rows whose entries were found late, in a group with others, have to go back.
            order = whole.row.argsort(stable=True)
            whole = _Sparse(*(part[order] for part in whole))
        return whole

    def add(self, scores: Tensor, solved: Conjugate, alpha: float, begin: int) -> int | Tensor:
        """Take in solved rows from ``begin`` on; overwrites their scores (rows, vocab).

        Returns:
            How many of their probabilities are not zero.
        """
        vocab = scores.shape[1]
        position, row, value = solved.entries
        support: int | Tensor = len(row)
        self.add_entries(row, position - row * vocab, value, begin)
        for first, last in solved.dense:
            rows = slice(first, last)
            if alpha == 1 and not self._needed:
                support += (last - first) * vocab
                continue
            for a, b in row_groups(first, last, vocab, WHOLE):
                part = slice(a, b)
                write_probabilities(
                    scores[part], alpha, solved.maxima[part], solved.threshold[part], scores[part]
                )
            count = (last - first) * vocab if alpha == 1 else int(scores[rows].count_nonzero())
            support += count
            if self._needed:
                self._add_rows(scores[rows], count, begin + first)
        return support

    def add_entries(self, row: Tensor, column: Tensor, value: Tensor, begin: int) -> None:
        """Take in probabilities (k,) of rows, counted from ``begin`` on."""
        if self._needed and len(row):
            self._sparse.append(_Sparse(row + begin, column, value))

    def _add_rows(self, probability: Tensor, count: int, begin: int) -> None:
        """Take in probabilities (rows, vocab) with so many nonzeros, of rows from ``begin`` on."""
        vocab = probability.shape[1]
        if count <= _SPARSE_BELOW * probability.numel():
            position = nonzero(probability.to(torch.bool))
            row = position // vocab
            value = probability.flatten()[position]
            self.add_entries(row, position - row * vocab, value, begin)
            return
        rows = slice(begin, begin + len(probability))
        gradient = weight_gradient(probability, self.hidden[rows])
        if self.dense[0].numel():
            self.dense[1] += gradient
        else:
            self.dense[:2] = torch.zeros_like(self.hidden), gradient
        self.dense[0][rows] = product(probability, self.weight.t())
        self.dense[2] += probability.sum(0)


def _rows_times(sparse: _Sparse, matrix: Tensor, rows: int) -> Tensor:
    """The sparse matrix (rows, n), ordered by row, times a matrix (n, d): (rows, d)."""
    counts = torch.bincount(sparse.row, minlength=rows)
    return functional.embedding_bag(
        sparse.column,
        matrix,
        counts.cumsum(0) - counts,
        mode="sum",
        per_sample_weights=sparse.value,
    )


# The output layer: from hidden states to scores, log-probabilities, or the loss.
#
# Only `scores` and `log_probs` build the whole matrix of scores; the loss (`output_loss.py`) and the
# support (`output_decoding.py`) work on a few rows at a time.

# Scores that are held at once, but at least so many rows, for which the weights are read once.
_SCORES = 1 << 21
_ROWS = 128


class OutputLoss(NamedTuple):
    """What the loss of a batch has to say; all 0-dim tensors, only ``loss`` with a graph.

    Attributes:
        loss: sum of the losses of the targets that are not ignored (cross-entropy's unit, nats).
        tokens: how many targets are not ignored.
        correct: for how many of them the target has the largest score.
        support: how many probabilities are not zero, all their rows together.
    """

    loss: Tensor
    tokens: Tensor
    correct: Tensor
    support: Tensor


class OutputLayer(nn.Module):
    """A linear layer onto the vocabulary, and entmax or its loss on top.

    Args:
        hidden_size: size of the states that come in.
        vocab_size: how many tokens there are.
        alpha: of the entmax; a number >= 1, 1 is softmax.

    To tie the weights: ``output.weight = embedding.weight``.

    Attributes:
        prior: (vocab,) how label smoothing spreads its part of a target, sum 1; None: evenly.
    """

    prior: Tensor | None

    def __init__(self, hidden_size: int, vocab_size: int, alpha: float = 1.5) -> None:
        super().__init__()
        self.alpha = float(valid_alpha(alpha))
        self.weight = nn.Parameter(torch.empty(vocab_size, hidden_size))
        self.bias = nn.Parameter(torch.empty(vocab_size))
        self.register_buffer("prior", None, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias as ``torch.nn.Linear`` does."""
        bound = 1 / math.sqrt(max(self.weight.shape[1], 1))
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def scores(self, hidden: Tensor) -> Tensor:
        """Scores (..., vocab), in the weights' type, of hidden (..., hidden)."""
        with torch.autocast(hidden.device.type, enabled=False):
            return functional.linear(hidden.to(self.weight.dtype), self.weight, self.bias)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Log-probabilities (..., vocab), -inf outside the support, of hidden (..., hidden)."""
        return log_entmax(self.scores(hidden), self.alpha)

    @torch.no_grad()
    def support(self, hidden: Tensor) -> Support:
        """The tokens of positive probability of hidden (rows, hidden), and no gradient.

        As :meth:`log_probs`, of which it holds what is not -inf; the scores of some rows at a time.

        Raises:
            ValueError: if alpha is 1, or a row of scores is -inf everywhere.
        """
        if self.alpha == 1:
            raise ValueError("every token is in the support of a softmax: use log_probs")
        if self.weight.dtype not in (torch.float32, torch.float64):
            return as_support(self.log_probs(hidden))
        parts = []
        for begin, end in row_groups(0, len(hidden), len(self.weight), _SCORES, _ROWS):
            rows = hidden[begin:end].to(self.weight.dtype)
            with torch.autocast(hidden.device.type, enabled=False):
                scores = product(rows, self.weight, self.bias)
            found = find_support(scores, self.alpha)
            parts.append(found or as_support(dense_log_probs(scores, self.alpha)))
        return join(parts or [as_support(self.scores(hidden))])

    @torch._disable_dynamo
    def loss(
        self, hidden: Tensor, target: Tensor, ignore_index: int, label_smoothing: float = 0.0
    ) -> OutputLoss:
        """Sum of the losses of ``target`` (N,) int64 given ``hidden`` (N, hidden).

        As ``entmax_loss`` of :meth:`scores` with reduction "sum", without ever holding the scores
        of all rows. Gradients of gradients are refused with a RuntimeError. It looks at its data,
        so `torch.compile` leaves it out of its graphs (and refuses it with ``fullgraph=True``).

        Raises:
            ValueError: if shapes do not fit, a target is not in the vocabulary, label_smoothing
                not in [0, 1], a row of scores all -inf, or the weights of a half type.
        """
        if self.weight.dtype not in (torch.float32, torch.float64):
            raise ValueError(
                f"the loss needs weights of 32 or 64 bits, not {self.weight.dtype}: keep the layer "
                f"in float32 (autocast may do the rest)"
            )
        if not 0.0 <= label_smoothing <= 1.0:
            raise ValueError(f"label_smoothing must be between 0 and 1, got {label_smoothing}")
        if hidden.dim() != 2 or target.shape != hidden.shape[:1]:
            raise ValueError(
                f"expected hidden (N, hidden) and target (N,), got {tuple(hidden.shape)} and "
                f"{tuple(target.shape)}"
            )
        vocab = len(self.weight)
        kept = (target != ignore_index).nonzero().squeeze(1)
        if len(kept) < len(target):
            hidden, target = hidden[kept], target[kept]
        if len(target) and not 0 <= int(target.min()) <= int(target.max()) < vocab:
            raise ValueError(
                f"a target is not in the vocabulary of {vocab} tokens: smallest "
                f"{int(target.min())}, largest {int(target.max())}"
            )
        spread = None
        if label_smoothing > 0:
            even = self.weight.new_full((vocab,), 1 / vocab)
            spread = label_smoothing * (even if self.prior is None else self.prior)
        with torch.autocast(hidden.device.type, enabled=False):
            loss, correct, support = LinearLoss.apply(
                hidden.to(self.weight.dtype),
                self.weight,
                self.bias,
                target,
                self.alpha,
                float(label_smoothing),
                spread,
            )
        tokens = torch.tensor(len(target), device=hidden.device)
        return OutputLoss(loss, tokens, correct, support)

    def extra_repr(self) -> str:
        """Sizes and alpha, for printing."""
        vocab_size, hidden_size = self.weight.shape
        return f"hidden_size={hidden_size}, vocab_size={vocab_size}, alpha={self.alpha}"
