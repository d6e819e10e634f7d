"""The distribution of samples by definition: of whole outputs, and of two without replacement."""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple, TypeVar

import torch

from onmt_entmax.search import Sample, Sampling
from onmt_entmax.search.stepper import Stepper
from tests.search.enumeration import Tokens


class Outcome(NamedTuple):
    """What tells samples apart."""

    tokens: Tokens
    complete: bool
    """False if the length limit, or that no token may follow, ends the output."""


def outcome_of(sample: Sample) -> Outcome:
    """Return a sample without its probability."""
    return Outcome(sample.tokens, sample.complete)


def truncated(probabilities: Mapping[int, float], sampling: Sampling) -> dict[int, float]:
    """Return the tokens that one step may draw, and with which probabilities: first p, then k."""
    ranked = sorted(probabilities.items(), key=lambda pair: -pair[1])
    if sampling.topp:
        reached, count = 0.0, 0
        for _, p in ranked:
            count += 1
            reached += p
            if reached >= sampling.topp * sum(probabilities.values()):
                break
        ranked = ranked[:count]
    if sampling.topk > 0:
        least = ranked[: sampling.topk][-1][1]
        ranked = [(token, p) for token, p in ranked if p >= least]
    total = sum(p for _, p in ranked)
    return {token: p / total for token, p in ranked}


def distribution(
    stepper: Stepper, batch: Any, sampling: Sampling, max_length: int, forced: Tokens = ()
) -> dict[Outcome, float]:
    """Return the probability of every outcome, following one prefix at a time.

    Args:
        stepper: the model.
        batch: one sentence.
        sampling: how tokens are drawn; its temperature and `distinct` are not read.
        max_length: largest number of tokens of an output, without its end symbol.
        forced: what outputs must start with, at no cost.
    """
    outcomes = Counter[Outcome]()

    def follow(state: Any, last: int, tokens: Tokens, probability: float) -> None:
        """Add all outputs that begin with a prefix of this probability."""
        step = stepper.step(state, torch.tensor([last]))
        row = step.log_probs[0].double().exp().tolist()
        options = {t: p for t, p in enumerate(row) if p > 0 and t not in stepper.excluded}
        if len(tokens) < len(forced):
            token = forced[len(tokens)]
            if token in options:
                follow(step.state, token, (*tokens, token), probability)
            return
        if not options:
            outcomes[Outcome(tokens, complete=False)] += probability
            return
        for token, p in truncated(options, sampling).items():
            if token == stepper.eos:
                outcomes[Outcome(tokens, complete=True)] += probability * p
            elif len(tokens) == max_length:
                outcomes[Outcome(tokens, complete=False)] += probability * p
            else:
                follow(step.state, token, (*tokens, token), probability * p)

    with torch.inference_mode():
        follow(stepper.start(batch), stepper.bos, (), 1.0)
    return outcomes


Drawn = TypeVar("Drawn", bound=Hashable)


def first_two(probabilities: Mapping[Drawn, float]) -> dict[tuple[Drawn, Drawn], float]:
    """Return the probabilities of the first two draws without replacement."""
    return {
        (first, second): p * q / (1 - p)
        for first, p in probabilities.items()
        for second, q in probabilities.items()
        if first != second
    }
