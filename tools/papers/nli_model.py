"""The attention classifier of Martins and Astudillo (2016, section 4.3): its settings and network.

Two GRUs read a premise and a hypothesis, as in Rocktäschel et al. (2015). The hypothesis's last
state attends to the premise's states, by any mapping. All tensors are on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from onmt_entmax.config import Checked, option
from onmt_entmax.rules import FLAG, SHARE, Rule, positive, whole
from onmt_entmax.sparse import entmax
from tools.papers.nli_batches import Batch
from tools.papers.nli_data import LABELS

ALPHAS = {"softmax": 1.0, "entmax15": 1.5, "sparsemax": 2.0}
_COUNT = whole(1, 10**6)
_OUTPUT = Rule(float, 1, 10**6, names=tuple(ALPHAS))
ATTENTION = replace(_OUTPUT, names=("none", "logistic", *ALPHAS))


def _required(rule: Rule) -> Any:
    """Declare a field that every configuration has."""
    return option(None, rule, required=True)


@dataclass(frozen=True)
class Settings(Checked):
    """The configuration of a training.

    Attributes:
        train: file of training pairs.
        lowercase: whether all words are written in small letters.
        min_frequency: rarer words are unknown.
        attention: `none`, `logistic`, a mapping's name or its alpha.
        output: mapping of the output, and so the loss; a name or alpha.
        word_vec_size: of word vectors.
        rnn_size: of projected word vectors, states and attention.
        dropout: of word vectors and of the hypothesis's last state.
        learning_rate: of Adam.
        l2: Adam's weight decay, of all weights but word vectors.
        batch_size: pairs in an update.
        epochs: passes over the training pairs.
        dev: file of pairs that choose the epoch; or
        held_out: share of the training pairs that choose it, with premises of their own.
        embeddings: file of word vectors as text, which stay as they are; empty: all are learned.
        seed: of weights, order and dropout.
    """

    train: str = _required(Rule(str))
    lowercase: bool = _required(FLAG)
    min_frequency: int = _required(_COUNT)
    attention: float | str = _required(ATTENTION)
    output: float | str = _required(_OUTPUT)
    word_vec_size: int = _required(_COUNT)
    rnn_size: int = _required(_COUNT)
    dropout: float = _required(SHARE)
    learning_rate: float = _required(positive(100))
    l2: float = _required(Rule(float, 0, 100))
    batch_size: int = _required(_COUNT)
    epochs: int = _required(_COUNT)
    dev: str = option("", Rule(str))
    held_out: float = option(0.0, SHARE)
    embeddings: str = option("", Rule(str))
    seed: int = option(1, whole(0, 2**63 - 1))


def alpha_of(mapping: float | str) -> float:
    """Return the alpha of a mapping's name; a number is its own."""
    return ALPHAS[mapping] if isinstance(mapping, str) else float(mapping)


def is_dense(attention: float | str) -> bool:
    """Return whether a kind of attention, other than `none`, gives weight to every word."""
    return attention == "logistic" or alpha_of(attention) == 1


class PremiseAttention(nn.Module):
    r"""Attention of a hypothesis over the states of a premise.

    .. math:: z_t = v^\top \tanh(W^{pm} h_t + W^{hm} h_N + b^m), \qquad p = f(z)

    where f is entmax, or the logistic function of each score, whose weights have no fixed sum.

    Args:
        size: of the states.
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

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Return scores `(batch, labels)`, and weights `(batch, length)` of the premise's words.

        A pair's result does not depend on the others.
        """
        states, last = self._read(self.premise, batch.premises, batch.premise_lengths)
        _, query = self._read(self.hypothesis, batch.hypotheses, batch.hypothesis_lengths, last)
        query = self.dropout(query[0])
        weights = None
        context = last[0]  # without attention, the premise's last state
        if self.attention is not None:
            weights = self.attention(states, query, batch.premise_lengths)
            context = torch.einsum("bl,bls->bs", weights, states)
        hidden = torch.tanh(self.combined(torch.cat([context, query], 1)))
        return self.output(hidden), weights

    def _read(
        self, gru: nn.GRU, ids: Tensor, lengths: Tensor, first: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Read sentences with a GRU.

        Args:
            gru: reads them.
            ids: `(batch, length)`.
            lengths: `(batch,)`.
            first: state before the first word, `(1, batch, size)`; None: zero.

        Returns:
            All states `(batch, length, size)`, and the last ones `(1, batch, size)`.
        """
        words = self.projection(self.dropout(self.embedding(ids)))
        packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
        states, last = gru(packed, first)
        return pad_packed_sequence(states, batch_first=True)[0], last
