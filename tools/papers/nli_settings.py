"""The configuration of the attention classifier of `nli_model.py`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from onmt_entmax.config import Checked, option
from onmt_entmax.rules import FLAG, SHARE, Rule, positive, whole

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
        lowercase: whether all words are written in lower case.
        min_frequency: rarer words are unknown.
        attention: `none`, `logistic`, a mapping's name or its alpha.
        output: mapping of the output, and so the loss; a name or alpha.
        word_vec_size: size of word vectors.
        rnn_size: size of projected word vectors, states and attention.
        dropout: dropout probability of word vectors and of the hypothesis's last state.
        learning_rate: Adam's learning rate.
        l2: Adam's weight decay, of all weights but word vectors.
        batch_size: pairs in an update.
        epochs: passes over the training pairs.
        dev: file of pairs that choose the epoch; empty: `held_out` says which do.
        held_out: share of the training pairs that choose the epoch instead; their premises are not
            in the other pairs.
        embeddings: file of word vectors as text, which training keeps; empty: all are learned.
        seed: seed of weights, order and dropout.
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
