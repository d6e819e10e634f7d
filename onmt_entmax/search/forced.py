"""Forced decoding: score given targets token by token."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from onmt_entmax.errors import counted
from onmt_entmax.search.stepper import Step, Stepper, no_support


class TokenScore(NamedTuple):
    """Score of one token of a target, or of its end symbol."""

    log_prob: float
    """-inf if the model excludes the token here."""
    rank: int
    """1 + number of more probable tokens; support + 1 for an excluded token."""
    support: int
    """Number of tokens of positive probability here."""


@dataclass(frozen=True)
class TargetScore:
    """Score of one target."""

    steps: tuple[TokenScore, ...]
    """One for each token, then one for the end symbol."""

    @property
    def log_prob(self) -> float:
        """Log-probability of the target, -inf if the model cannot produce it."""
        return total_log_prob(self.steps)

    @property
    def excluded_at(self) -> int | None:
        """Position (from 0) of the first token that the model excludes, or None."""
        return first_excluded(self.steps)


def total_log_prob(scores: Iterable[TokenScore]) -> float:
    """Return the log-probability of consecutive tokens, -inf if the model excludes one."""
    return sum(score.log_prob for score in scores)


def first_excluded(scores: Iterable[TokenScore]) -> int | None:
    """Return the position (from 0) of the first token that the model excludes, or None."""
    positions = (i for i, score in enumerate(scores) if score.log_prob == -torch.inf)
    return next(positions, None)


class TargetStep(NamedTuple):
    """One position of several targets, and the model's step there."""

    sentences: list[int]
    """The sentences whose targets reach the position, one for each row of the step."""
    tokens: list[int]
    """Their tokens at the position, or end symbols."""
    step: Step
    """The step, whose distribution is that before these tokens."""


def along_targets(
    stepper: Stepper, batch: Any, targets: Sequence[Sequence[int]]
) -> Iterator[TargetStep]:
    """Step through given targets, all sentences together, even where the model excludes a token.

    Args:
        stepper: the model.
        batch: the sentences; its `len` is their number.
        targets: for each sentence token ids, without start and end symbol.

    Yields:
        The first position of all targets, then the second, to the end symbol of the longest.

    Raises:
        ValueError: if there are not as many targets as sentences.
    """
    if len(targets) != len(batch):
        raise ValueError(f"targets has {len(targets)} for {counted(len(batch), 'sentence')}")
    complete = [[*target, stepper.eos] for target in targets]
    state = stepper.start(batch)
    sentences = list(range(len(targets)))  # of the rows
    last = [stepper.bos] * len(sentences)
    position = 0
    while sentences:
        step = stepper.step(state, torch.tensor(last))
        tokens = [complete[sentence][position] for sentence in sentences]
        yield TargetStep(sentences, tokens, step)
        position += 1
        rows = [row for row, i in enumerate(sentences) if position < len(complete[i])]
        sentences, last = [sentences[row] for row in rows], [tokens[row] for row in rows]
        if rows:
            state = stepper.select(step.state, torch.tensor(rows))


@torch.inference_mode()
def score_targets(
    stepper: Stepper, batch: Any, targets: Sequence[Sequence[int]]
) -> list[TargetScore]:
    """Score one target for each sentence; an excluded token does not end the scoring.

    Args:
        stepper: the model.
        batch: the sentences; its `len` is their number.
        targets: for each sentence token ids, without start and end symbol.

    Raises:
        SearchError: if the model gives no token a positive probability.
        ValueError: if there are not as many targets as sentences.
    """
    scores: list[list[TokenScore]] = [[] for _ in targets]
    for sentences, tokens, step in along_targets(stepper, batch, targets):
        for i, score in zip(sentences, token_scores(step, tokens), strict=True):
            scores[i].append(score)
    return [TargetScore(tuple(steps)) for steps in scores]


def token_scores(step: Step, tokens: Sequence[int]) -> list[TokenScore]:
    """Return the score of one token for each row of a step.

    Args:
        step: a step of these rows.
        tokens: the id of one token for each row.

    Raises:
        SearchError: if a row gives no token a positive probability.
    """
    log_probs = clipped_log_probs(step)
    own = log_probs.gather(1, torch.tensor(tokens, device=log_probs.device)[:, None])
    ranks = 1 + (log_probs > own).sum(1)
    supports = (log_probs > -torch.inf).sum(1)
    if not bool(supports.all()):
        raise no_support()
    columns = own[:, 0].double().tolist(), ranks.tolist(), supports.tolist()
    return [TokenScore(*values) for values in zip(*columns, strict=True)]


def clipped_log_probs(step: Step) -> Tensor:
    """Return the log-probabilities of a step `(rows, vocabulary)`, rounded to at most 0.

    A sum of probabilities may round above 1, as in search.
    """
    return step.log_probs.clamp(max=0.0)
