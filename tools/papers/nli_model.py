"""The attention classifier of Martins and Astudillo (2016, section 4.3).

Two GRUs read a premise and a hypothesis, as in Rocktäschel et al. (2015). The hypothesis's last
state attends to the premise's states, by any mapping. All tensors are on the CPU.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from onmt_entmax.sparse import entmax
from tools.papers.nli_batches import Batch
from tools.papers.nli_data import LABELS
from tools.papers.nli_settings import Settings, alpha_of


class PremiseAttention(nn.Module):
    r"""Attention of a hypothesis over the states of a premise.

    .. math:: z_t = v^\top \tanh(W^{pm} h_t + W^{hm} h_N + b^m), \qquad p = f(z)

    where f is entmax, or the logistic function of each score, whose weights have no fixed sum.

    Args:
        size: size of the states.
        kind: `logistic`, or a mapping.
    """

    def __init__(self, size: int, kind: float | str) -> None:
        super().__init__()
        self.kind = kind
        self.premise = nn.Linear(size, size, bias=False)
        self.hypothesis = nn.Linear(size, size)
        self.score = nn.Linear(size, 1, bias=False)

    def forward(self, states: Tensor, query: Tensor, lengths: Tensor) -> Tensor:
        """Return the weights `(batch, length)`, 0 in the padding.

        Args:
            states: `(batch, length, size)` of the premises.
            query: `(batch, size)`, the last state of each hypothesis.
            lengths: `(batch,)` of the premises.
        """
        hidden = torch.tanh(self.premise(states) + self.hypothesis(query).unsqueeze(1))
        padding = torch.arange(states.shape[1]) >= lengths.unsqueeze(1)
        scores = self.score(hidden).squeeze(2).masked_fill(padding, -torch.inf)
        return scores.sigmoid() if self.kind == "logistic" else entmax(scores, alpha_of(self.kind))


class Classified(NamedTuple):
    """What the network says of a batch.

    Attributes:
        scores: `(batch, labels)`.
        weights: `(batch, length)`, of the premise's words; None without attention.
    """

    scores: Tensor
    weights: Tensor | None


class States(NamedTuple):
    """The states of a GRU.

    Attributes:
        all: `(batch, length, size)`.
        last: `(1, batch, size)`.
    """

    all: Tensor
    last: Tensor


class Classifier(nn.Module):
    """The network of Martins and Astudillo (2016).

    Args:
        settings: its sizes and mappings.
        words: size of the vocabulary.
    """

    def __init__(self, settings: Settings, words: int) -> None:
        super().__init__()
        size = settings.rnn_size
        self.embedding = nn.Embedding(words, settings.word_vec_size)
        self.projection = nn.Linear(settings.word_vec_size, size)
        self.premise = nn.GRU(size, size, batch_first=True)
        self.hypothesis = nn.GRU(size, size, batch_first=True)
        self.attention = None
        if settings.attention != "none":
            self.attention = PremiseAttention(size, settings.attention)
        self.combined = nn.Linear(2 * size, size)
        self.output = nn.Linear(size, len(LABELS))
        self.dropout = nn.Dropout(settings.dropout)

    def forward(self, batch: Batch) -> Classified:
        """Classify the pairs of a batch; the result of a pair does not depend on the others."""
        states, last = self._read(self.premise, batch.premises, batch.premise_lengths)
        _, query = self._read(self.hypothesis, batch.hypotheses, batch.hypothesis_lengths, last)
        query = self.dropout(query[0])
        weights = None
        context = last[0]  # without attention, the premise's last state
        if self.attention is not None:
            weights = self.attention(states, query, batch.premise_lengths)
            context = torch.einsum("bl,bls->bs", weights, states)
        hidden = torch.tanh(self.combined(torch.cat([context, query], 1)))
        return Classified(self.output(hidden), weights)

    def _read(
        self, gru: nn.GRU, ids: Tensor, lengths: Tensor, first: Tensor | None = None
    ) -> States:
        """Read sentences with a GRU.

        Args:
            gru: reads them.
            ids: `(batch, length)`.
            lengths: `(batch,)`.
            first: state before the first word, `(1, batch, size)`; None: zero.
        """
        words = self.projection(self.dropout(self.embedding(ids)))
        packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
        states, last = gru(packed, first)
        return States(pad_packed_sequence(states, batch_first=True)[0], last)
