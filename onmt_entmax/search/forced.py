"""Forced decoding: score given targets token by token, and suggest how a prefix goes on."""

from collections.abc import Collection, Iterator, Sequence
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
        return sum(step.log_prob for step in self.steps)

    @property
    def excluded_at(self) -> int | None:
        """Position (from 0) of the first token that the model excludes, or None."""
        positions = (i for i, step in enumerate(self.steps) if step.log_prob == -torch.inf)
        return next(positions, None)


def along_targets(
    stepper: Stepper, batch: Any, targets: Sequence[Sequence[int]]
) -> Iterator[tuple[list[int], list[int], Step]]:
    """Step through given targets, all sentences together, even where the model excludes a token.

    Args:
        stepper: the model.
        batch: the sentences; its `len` is their number.
        targets: for each sentence token ids, without start and end symbol.

    Yields:
        For the first position of all targets, then the second, to the end symbol of the longest:
        the sentences whose targets reach it, one for each row of the step; their tokens there, or
        end symbols; and the step with the model's distribution.

    Raises:
        ValueError: if there are not as many targets as sentences.
    """
    if len(targets) != len(batch):
        raise ValueError(f"targets has {len(targets)} for {counted(len(batch), 'sentence')}")
    complete = [[*target, stepper.eos] for target in targets]
    state, live = stepper.start(batch), list(range(len(targets)))
    tokens, position = [stepper.bos] * len(live), 0
    while live:
        step = stepper.step(state, torch.tensor(tokens))
        tokens = [complete[i][position] for i in live]
        yield live, tokens, step
        position += 1
        rows = [row for row, i in enumerate(live) if position < len(complete[i])]
        live, tokens = [live[row] for row in rows], [tokens[row] for row in rows]
        state = stepper.select(step.state, torch.tensor(rows)) if rows else None


@torch.inference_mode()
def score_targets(
    stepper: Stepper, batch: Any, targets: Sequence[Sequence[int]]
) -> list[TargetScore]:
    """Score one target for each sentence; an excluded token does not end the scoring.

    Args and raises: as `along_targets`.
    """
    scores: list[list[TokenScore]] = [[] for _ in targets]
    for sentences, tokens, step in along_targets(stepper, batch, targets):
        for i, score in zip(sentences, _token_scores(step, tokens), strict=True):
            scores[i].append(score)
    return [TargetScore(tuple(steps)) for steps in scores]


def _token_scores(step: Step, tokens: Sequence[int]) -> list[TokenScore]:
    """Return the score of one token for each row of a step.

    Raises:
        SearchError: if a row gives no token a positive probability.
    """
    log_probs = _log_probs(step)
    own = log_probs.gather(1, torch.tensor(tokens, device=log_probs.device)[:, None])
    ranks = 1 + (log_probs > own).sum(1)
    supports = (log_probs > -torch.inf).sum(1)
    if not bool(supports.all()):
        raise no_support()
    columns = own[:, 0].double().tolist(), ranks.tolist(), supports.tolist()
    return [TokenScore(*values) for values in zip(*columns, strict=True)]


def _log_probs(step: Step) -> Tensor:
    """Return the log-probabilities of a step `(rows, vocabulary)`, rounded to at most 0.

    A sum of probabilities may round above 1, as in search.
    """
    return step.log_probs.clamp(max=0.0)


@dataclass(frozen=True)
class Suggestion:
    """How an output may go on after a prefix."""

    log_prob: float
    """Log-probability of the prefix; -inf if the model excludes it."""
    excluded_at: int | None
    """Position (from 0) of the prefix's first token that the model excludes, or None."""
    continuations: tuple[tuple[int, float], ...]
    """All possible next tokens, the end symbol included, with their log-probabilities, the most
    probable first. A token is possible if it has positive probability and is not banned."""
    completion: tuple[int, ...]
    """The tokens that must follow: as long as a single one is possible."""
    complete: bool
    """Whether the end symbol is all that is possible after `completion`."""


@torch.inference_mode()
def suggest(
    stepper: Stepper,
    batch: Any,
    prefix: Sequence[int] = (),
    max_length: int = 100,
    banned: Collection[int] = (),
) -> Suggestion:
    """Suggest how an output may go on (Peters, Niculae and Martins 2019, Figure 2).

    With a sparse output the next tokens are few, and often there is only one: then the continuation
    is forced, and a writer need not type it.

    Args:
        stepper: the model.
        batch: one sentence.
        prefix: token ids that were written already.
        max_length: longest prefix and completion together.
        banned: token ids that the output may not have.

    Raises:
        SearchError: if the model gives no token a positive probability.
    """
    scored, step = _after_prefix(stepper, batch, prefix)
    never = {*stepper.excluded, *banned}
    continuations = _possible(step, never)
    possible, completion = continuations, list[int]()
    while len(possible) == 1 and len(prefix) + len(completion) < max_length:
        ((token, _),) = possible
        if token == stepper.eos:
            break
        completion.append(token)
        step = stepper.step(step.state, torch.tensor([token]))
        possible = _possible(step, never)
    return Suggestion(
        log_prob=scored.log_prob,
        excluded_at=scored.excluded_at,
        continuations=tuple(continuations),
        completion=tuple(completion),
        complete=[token for token, _ in possible] == [stepper.eos],
    )


def _after_prefix(stepper: Stepper, batch: Any, prefix: Sequence[int]) -> tuple[TargetScore, Step]:
    """Return the score of the prefix of one sentence, without an end symbol, and the step after it.

    Raises:
        SearchError: if the model gives no token a positive probability.
    """
    scores: list[TokenScore] = []
    last: Step | None = None
    for _, tokens, step in along_targets(stepper, batch, [prefix]):
        scores += _token_scores(step, tokens)
        last = step
    assert last is not None, "there is always the step of the end symbol"
    return TargetScore(tuple(scores[:-1])), last


def _possible(step: Step, never: Collection[int]) -> list[tuple[int, float]]:
    """Return the tokens that may follow with their log-probabilities, the most probable first.

    Args:
        step: of one row.
        never: tokens that no output has.

    Raises:
        SearchError: if the model gives no token a positive probability.
    """
    log_probs = _log_probs(step)[0]
    inside = (log_probs > -torch.inf).nonzero()[:, 0].tolist()
    if not inside:
        raise no_support()
    pairs = [(token, float(log_probs[token])) for token in inside if token not in never]
    return sorted(pairs, key=lambda pair: -pair[1])
