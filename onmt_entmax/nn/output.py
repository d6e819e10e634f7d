"""The output layer: from decoder states to scores, log-probabilities, the support, or the loss.

`OutputLayer` is the module; `Support` and `PreparedOutput` serve a search, `LinearLoss` training.
Where the output is sparse, no more scores than a group of rows has are ever in memory.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional

from onmt_entmax.nn.bf16_filter import Bf16Filter, is_worthwhile, scores_at
from onmt_entmax.nn.products import PreparedWeight, product, weight_gradient
from onmt_entmax.sparse.arguments import valid_alpha
from onmt_entmax.sparse.backends import backend_for
from onmt_entmax.sparse.candidates import Candidates, nonzero
from onmt_entmax.sparse.conjugate import Conjugate, row_groups
from onmt_entmax.sparse.functional import log_entmax
from onmt_entmax.sparse.solvers import checked_softmax, has_power_form, margins

# Scores in a group of rows for the loss and `OutputLayer.support`. A group has at least so many
# rows, since each group reads all weights once.
_GROUP_SCORES = 1 << 21
_GROUP_ROWS = 128
# Scores in a group of a search's rows: below 32 MB, the allocator reuses the memory.
_SEARCH_GROUP_SCORES = 1 << 22
# From this many scores on, finding the support costs less than computing all logarithms.
_LEAST_SCORES = 1 << 16
# The part of a row up to which its support is listed; larger ones are quicker as whole rows.
_MOST_SUPPORT = 1 / 8
# Tokens of each row that a GPU sends to a search at once; further ones are asked for.
_SENT = 16
# Groups of a search that skip the bfloat16 filter after it found too many candidates.
_FILTER_PAUSE = 32
# The loss filters the next group if this one's supports are at most so large on average, and if
# enough rows are left to pay for preparing the filter.
_MOST_FILTERED_SUPPORT = 24
_LEAST_FILTERED_ROWS = 640
# Mean share of the vocabulary in a group's supports below which sparse products beat dense ones.
_SPARSE_BELOW = 1 / 12


class OutputLoss(NamedTuple):
    """Loss and counts of a batch: 0-dim tensors, of which only ``loss`` has a graph.

    Attributes:
        loss: sum over the targets that are not ignored, in nats.
        tokens: number of targets that are not ignored.
        correct: how many of them have the largest score.
        support: number of nonzero probabilities, summed over their rows.
    """

    loss: Tensor
    tokens: Tensor
    correct: Tensor
    support: Tensor


class OutputLayer(nn.Module):
    """A linear layer onto the vocabulary, followed by entmax or its loss.

    To tie the weights: ``output.weight = embedding.weight``.

    Args:
        hidden_size: of the decoder's states.
        vocab_size: number of tokens.
        alpha: a number >= 1; 1 is softmax.

    Attributes:
        prior: ``(vocab,)`` distribution that label smoothing mixes in; None is uniform.
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
        """Initialise weight and bias as ``torch.nn.Linear`` does."""
        bound = 1 / math.sqrt(max(self.weight.shape[1], 1))
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def scores(self, hidden: Tensor) -> Tensor:
        """Return scores ``(..., vocab)``, in the weights' type, of hidden ``(..., hidden)``."""
        with torch.autocast(hidden.device.type, enabled=False):
            return functional.linear(hidden.to(self.weight.dtype), self.weight, self.bias)

    def log_probs(self, hidden: Tensor) -> Tensor:
        """Return log-probabilities ``(..., vocab)``, -inf outside the support."""
        return log_entmax(self.scores(hidden), self.alpha)

    @torch.no_grad()
    def support(self, hidden: Tensor) -> Support:
        """Return the tokens of positive probability of hidden ``(rows, hidden)``; no gradient.

        Raises:
            ValueError: if alpha is 1, or a row of scores is -inf everywhere.
        """
        if self.alpha == 1:
            raise ValueError("every token is in the support of a softmax: use log_probs")
        if self.weight.dtype not in (torch.float32, torch.float64):
            return as_support(self.log_probs(hidden))
        parts = []
        for begin, end in row_groups(0, len(hidden), len(self.weight), _GROUP_SCORES, _GROUP_ROWS):
            rows = hidden[begin:end].to(self.weight.dtype)
            with torch.autocast(hidden.device.type, enabled=False):
                scores = product(rows, self.weight, self.bias)
            found = find_support(scores, self.alpha)
            parts.append(found or as_support(log_entmax(scores, self.alpha)))
        return join_supports(parts or [as_support(self.scores(hidden))])

    def spread(self, label_smoothing: float) -> Tensor | None:
        """Return what smoothing adds to the target probability of each token ``(vocab,)``."""
        if label_smoothing == 0:
            return None
        vocab = len(self.weight)
        even = self.weight.new_full((vocab,), 1 / vocab) if self.prior is None else self.prior
        return label_smoothing * even

    @torch._disable_dynamo
    def loss(
        self, hidden: Tensor, target: Tensor, ignore_index: int, label_smoothing: float = 0.0
    ) -> OutputLoss:
        """Return the summed loss of ``target`` ``(N,)`` int64 given ``hidden`` ``(N, hidden)``.

        Equals ``entmax_loss`` of :meth:`scores` with reduction "sum", but never holds the scores of
        all rows, and has no gradients of gradients (RuntimeError). It depends on the data, so
        `torch.compile` leaves it out of its graphs (and refuses it with ``fullgraph=True``).

        Raises:
            ValueError: if the shapes do not fit, a target is not in the vocabulary,
                label_smoothing is not in [0, 1], a row of scores is -inf everywhere, or the
                weights have 16 bits.
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
        with torch.autocast(hidden.device.type, enabled=False):
            loss, correct, support = LinearLoss.apply(
                hidden.to(self.weight.dtype),
                self.weight,
                self.bias,
                target,
                self.alpha,
                float(label_smoothing),
                self.spread(label_smoothing),
            )
        tokens = torch.tensor(len(target), device=hidden.device)
        return OutputLoss(loss, tokens, correct, support)

    def extra_repr(self) -> str:
        """Return sizes and alpha, for printing."""
        vocab_size, hidden_size = self.weight.shape
        return f"hidden_size={hidden_size}, vocab_size={vocab_size}, alpha={self.alpha}"


# --- The support of rows ------------------------------------------------------------------------


class Support(NamedTuple):
    """The tokens of positive probability of some rows, with their log-probabilities."""

    rows: int
    """Number of rows, those without entries included."""
    vocabulary: int
    """Number of tokens."""
    row: Tensor
    """``(entries,)`` int64, ascending."""
    token: Tensor
    """``(entries,)`` int64, ascending within a row."""
    log_prob: Tensor
    """``(entries,)``, finite unless the row's scores are not."""

    def dense(self) -> Tensor:
        """Return log-probabilities ``(rows, vocabulary)``, -inf outside the support."""
        whole = self.log_prob.new_full((self.rows, self.vocabulary), -torch.inf)
        whole.view(-1)[self.row * self.vocabulary + self.token] = self.log_prob
        return whole


Distribution = Tensor | Support
"""Log-probabilities of the next token: all ``(rows, vocabulary)``, or those of the support."""


def find_support(scores: Tensor, alpha: float) -> Support | None:
    """Find the support of rows of scores, with the log-probabilities of `log_entmax`.

    Args:
        scores: ``(rows, vocabulary)`` float32 or float64, contiguous; without autograd.
        alpha: a number > 1.

    Returns:
        None if all logarithms would be quicker: the scores are few or a support is large.
    """
    if scores.numel() < _LEAST_SCORES:
        return None
    solved = backend_for(scores, alpha).conjugate(scores, alpha, sparse_part=_MOST_SUPPORT)
    if solved.dense:
        return None
    position, row, probability = solved.entries
    if has_power_form(alpha):
        # From the margins, since small probabilities have few digits.
        given = scores.view(-1)[position], alpha, solved.maxima[row, 0], solved.threshold[row, 0]
        values = margins(*given).mul_(alpha - 1).log_().div_(alpha - 1)
    else:
        values = probability.log()
    rows, vocabulary = scores.shape
    token = position - row * vocabulary
    return Support(rows, vocabulary, row, token, values.to(scores.dtype))


def as_support(log_probs: Tensor) -> Support:
    """Return the entries of contiguous log-probabilities that are not -inf; nan is kept."""
    rows, vocabulary = log_probs.shape
    position = nonzero(log_probs != -torch.inf)
    row = position // vocabulary
    return Support(rows, vocabulary, row, position - row * vocabulary, log_probs.view(-1)[position])


def sent_support(log_probs: Tensor) -> Distribution:
    """Return the support of contiguous log-probabilities on the CPU, as a rule by one transfer.

    Returns:
        The log-probabilities themselves if many rows have large supports.
    """
    rows, vocabulary = log_probs.shape
    room = min(_SENT, vocabulary)
    best, token = log_probs.topk(room)
    exact = torch.promote_types(best.dtype, torch.float32)  # half types do not hold all tokens
    best, token = torch.stack([best.to(exact), token.to(exact)]).cpu()
    entries = best != -torch.inf  # nan is kept
    wide = entries[:, -1].nonzero().squeeze(1) if room < vocabulary else token.new_empty(0).long()
    if _SENT * len(wide) > rows:
        return log_probs
    entries[wide] = False
    row, value, token = entries.nonzero()[:, 0], best[entries], token[entries].long()
    if len(wide):
        more = as_support(log_probs[wide.to(log_probs.device)])
        row = torch.cat([row, wide[more.row.cpu()]])
        token, value = torch.cat([token, more.token.cpu()]), torch.cat([value, more.log_prob.cpu()])
    order = (row * vocabulary + token).argsort()
    return Support(rows, vocabulary, row[order], token[order], value[order])


def join_supports(parts: Sequence[Support]) -> Support:
    """Concatenate the rows of one or more supports."""
    if len(parts) == 1:
        return parts[0]
    begins = itertools.accumulate((part.rows for part in parts), initial=0)
    row = torch.cat([part.row + begin for part, begin in zip(parts, begins, strict=False)])
    token, log_prob = torch.cat([x.token for x in parts]), torch.cat([x.log_prob for x in parts])
    return Support(sum(x.rows for x in parts), parts[0].vocabulary, row, token, log_prob)


# --- The output layer in a search ---------------------------------------------------------------


class PreparedOutput:
    """An output layer prepared for the steps of a search; later changes of the weights are ignored.

    A trained model leaves a few tokens of a large vocabulary in the support, and a search needs no
    others: their logarithms are never computed.

    Args:
        weight: ``(vocabulary, hidden)``.
        bias: ``(vocabulary,)``.
        alpha: a number >= 1.
    """

    @torch.inference_mode()
    def __init__(self, weight: Tensor, bias: Tensor, alpha: float) -> None:
        self._vocabulary, self._alpha = len(weight), alpha
        self._scores = PreparedWeight(weight, bias)
        self._finds_support = weight.device.type == "cpu" and alpha > 1
        self._filter = Bf16Filter(weight, bias, alpha) if is_worthwhile(weight, alpha) else None
        self._pause = 0

    def begin(self) -> None:
        """Reset, so that results do not depend on earlier batches.

        Filtered and unfiltered scores differ in their last digits.
        """
        self._pause = 0

    @torch.inference_mode()
    def __call__(self, hidden: Tensor) -> Distribution:
        """Return log-probabilities of the next token given hidden ``(rows, hidden)``.

        The result is a `Support`, on the CPU, where that is quicker to find, else a tensor.
        """
        groups = list(row_groups(0, len(hidden), self._vocabulary, _SEARCH_GROUP_SCORES))
        if self._alpha == 1 and len(groups) > 1:
            whole = hidden.new_empty(len(hidden), self._vocabulary)
            for begin, end in groups:
                scores = self._scores(hidden[begin:end])
                checked_softmax(torch.log_softmax(scores, -1, out=whole[begin:end]), scores)
            return whole
        if not self._finds_support:
            log_probs = log_entmax(self._scores(hidden), self._alpha)
            return log_probs if self._alpha == 1 else sent_support(log_probs)
        if not groups:
            return as_support(self._scores(hidden))
        parts = [self._group(hidden[begin:end]) for begin, end in groups]
        supports = [part for part in parts if isinstance(part, Support)]
        if len(supports) == len(parts):
            return join_supports(supports)
        rows = [part.dense() if isinstance(part, Support) else part for part in parts]
        return rows[0] if len(rows) == 1 else torch.cat(rows)

    def _group(self, hidden: Tensor) -> Distribution:
        """Return the log-probabilities of one group of rows."""
        if self._filter is not None and self._pause == 0:
            candidates = self._filter.candidates(hidden)
            if candidates is not None:
                return _among_candidates(candidates, self._alpha, self._vocabulary)
            self._pause = _FILTER_PAUSE
        self._pause = max(self._pause - 1, 0)
        scores = self._scores(hidden)
        found = find_support(scores, self._alpha)
        return log_entmax(scores, self._alpha) if found is None else found


def _among_candidates(found: Candidates, alpha: float, vocabulary: int) -> Support:
    """Return the support, given the scores of all tokens that may be in it."""
    values = log_entmax(found.scores, alpha).view(-1)[found.slot]
    inside = (values != -torch.inf).nonzero().squeeze(1)
    position, row, values = (x[inside] for x in (found.position, found.row, values))
    return Support(len(found.scores), vocabulary, row, position - row * vocabulary, values)


# --- The training loss --------------------------------------------------------------------------


class LinearLoss(Function):
    """Summed loss of a linear layer's scores as one autograd node; see :meth:`OutputLayer.loss`.

    ``apply(hidden, weight, bias, target, alpha, smoothing, spread)``, without ignored targets;
    ``spread`` ``(vocab,)`` is what smoothing adds to each token's target probability, or None.
    Returns the loss, the number of targets with the largest score, and the number of nonzero
    probabilities.

    Scores are computed for one group of rows at a time; only the support is kept of them. The
    gradient in the scores is zero outside the support (and the target), so the gradients of states
    and weights are sparse products. Rows with large supports take dense products at once, while
    their scores exist.
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
        may_filter, bf16_filter = is_worthwhile(weight, alpha), None
        groups = list(row_groups(0, len(hidden), len(weight), _GROUP_SCORES, _GROUP_ROWS))
        for begin, end in groups:
            chunk, found = slice(begin, end), None
            # Groups of one size only: oneDNN compiles a program for each size.
            if bf16_filter is not None and end - begin == groups[0][1]:
                found = bf16_filter.candidates(hidden[chunk])
                may_filter = found is not None
            if found is None:
                more, right, members = _group_loss(gathered, target[chunk], terms, begin)
            else:
                more, right, members = _filtered_loss(gathered, target[chunk], terms, begin, found)
            loss, correct, support = loss + more, correct + right, support + members
            if not may_filter or int(members) > _MOST_FILTERED_SUPPORT * (end - begin):
                bf16_filter = None
            elif bf16_filter is None and len(hidden) - end >= _LEAST_FILTERED_ROWS:
                bf16_filter = Bf16Filter(weight, bias, alpha)
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


class _Sparse(NamedTuple):
    """Entries ``(k,)`` of a sparse matrix, ordered by row; row and column are int64."""

    row: Tensor
    column: Tensor
    value: Tensor


class _Terms(NamedTuple):
    """The loss's parameters, see `LinearLoss`."""

    alpha: float
    smoothing: float
    spread: Tensor | None


def _group_loss(
    gathered: _Gathered, target: Tensor, terms: _Terms, begin: int
) -> tuple[Tensor, Tensor, int | Tensor]:
    """Return loss, correct targets and support size of the group of rows from ``begin`` on.

    ``gathered`` receives what their gradient needs.
    """
    hidden = gathered.hidden[begin : begin + len(target)]
    scores = product(hidden, gathered.weight, gathered.bias)
    own = scores.gather(1, target.unsqueeze(1))
    backend = backend_for(scores, terms.alpha)
    solved = backend.conjugate(scores, terms.alpha, sparse_part=_SPARSE_BELOW)
    correct = (own == solved.maxima).sum()
    loss = _sum_of_losses(solved, own, terms.smoothing)
    if terms.spread is not None:
        loss -= scores.sum(0) @ terms.spread
    return loss, correct, gathered.add(scores, solved, terms.alpha, begin)


def _filtered_loss(
    gathered: _Gathered, target: Tensor, terms: _Terms, begin: int, found: Candidates
) -> tuple[Tensor, Tensor, int]:
    """Return the same as `_group_loss`, given only the candidates' scores."""
    hidden = gathered.hidden[begin : begin + len(target)]
    weight, bias = gathered.weight, gathered.bias
    own = scores_at(hidden, weight, bias, torch.arange(len(target)), target)
    backend = backend_for(found.scores, terms.alpha)
    # `sparse_part` 0 hints that no entries are needed.
    solved = backend.conjugate(found.scores, terms.alpha, sparse_part=0.0)
    probability = found.scores.new_zeros(found.scores.shape)
    entries = solved.entries
    probability.view(-1).scatter_(0, entries.position, entries.probability)
    for first, last in solved.dense:
        part = slice(first, last)
        backend.write_probabilities(
            found.scores[part],
            terms.alpha,
            solved.maxima[part],
            solved.threshold[part],
            probability[part],
        )
    loss = _sum_of_losses(solved, own.unsqueeze(1), terms.smoothing)
    if terms.spread is not None:
        loss -= hidden.sum(0) @ (terms.spread @ weight) + len(target) * (bias @ terms.spread)
    value = probability.view(-1)[found.slot]
    inside = value.nonzero().squeeze(1)
    row = found.row[inside]
    gathered.add_entries(row, found.position[inside] - row * len(weight), value[inside], begin)
    return loss, (own == solved.maxima.squeeze(1)).sum(), len(inside)


def _sum_of_losses(solved: Conjugate, own: Tensor, smoothing: float) -> Tensor:
    """Return the summed loss without the ``spread`` term; ``own`` ``(rows, 1)``: target scores."""
    logit_margins = solved.maxima - own  # small differences first: they keep their digits
    loss = (solved.shifted + (1 - smoothing) * logit_margins.squeeze(1)).sum()
    return loss + smoothing * solved.maxima.sum() if smoothing else loss


class _Gathered:
    """Collects what the gradient of `LinearLoss` needs, group by group of rows.

    Attributes:
        hidden: states ``(rows, hidden)``.
        weight: ``(vocab, hidden)``.
        bias: ``(vocab,)``.
        dense: gradients of hidden, weight and bias from the dense rows, without the targets' part;
            the first two are empty until a row is dense.
    """

    def __init__(self, hidden: Tensor, weight: Tensor, bias: Tensor, needed: bool) -> None:
        self.hidden, self.weight, self.bias, self._needed = hidden, weight, bias, needed
        self._sparse: list[_Sparse] = []
        empty = hidden.new_empty(0)
        self.dense = [empty, empty, hidden.new_zeros(len(weight))]

    def sparse(self) -> _Sparse:
        """Return the entries of all sparse rows, ordered by row."""
        nowhere = torch.empty(0, dtype=torch.int64, device=self.hidden.device)
        none = _Sparse(nowhere, nowhere, self.hidden.new_empty(0))
        whole = _Sparse(*(torch.cat(p) for p in zip(none, *self._sparse, strict=True)))
        if bool((whole.row.diff() < 0).any()):
            # `add` appends the sparse rows of a group before its other rows with few entries.
            order = whole.row.argsort(stable=True)
            whole = _Sparse(*(part[order] for part in whole))
        return whole

    def add(self, scores: Tensor, solved: Conjugate, alpha: float, begin: int) -> int | Tensor:
        """Add solved rows, the first of which is ``begin``; overwrites scores ``(rows, vocab)``.

        Returns:
            The number of their nonzero probabilities.
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
            given = (scores[rows], alpha, solved.maxima[rows], solved.threshold[rows], scores[rows])
            backend_for(*given).write_probabilities(*given)
            count = (last - first) * vocab if alpha == 1 else int(scores[rows].count_nonzero())
            support += count
            if self._needed:
                self._add_rows(scores[rows], count, begin + first)
        return support

    def add_entries(self, row: Tensor, column: Tensor, value: Tensor, begin: int) -> None:
        """Add probabilities ``(k,)``; ``row`` counts from ``begin``."""
        if self._needed and len(row):
            self._sparse.append(_Sparse(row + begin, column, value))

    def _add_rows(self, probability: Tensor, count: int, begin: int) -> None:
        """Add probabilities ``(rows, vocab)`` with ``count`` nonzeros, from row ``begin`` on."""
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
    """Return a sparse matrix ``(rows, n)``, ordered by row, times ``(n, d)``: ``(rows, d)``."""
    counts = torch.bincount(sparse.row, minlength=rows)
    return functional.embedding_bag(
        sparse.column,
        matrix,
        counts.cumsum(0) - counts,
        mode="sum",
        per_sample_weights=sparse.value,
    )
