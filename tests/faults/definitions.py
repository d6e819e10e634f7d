"""What a request allows, and how it scores, written from the definitions and without the search."""

import math

from onmt_entmax.search import Constraints, Penalties
from tests.search.enumeration import ALL_EXCLUDED, EnumeratedSupport, Tokens
from tests.search.table_steppers import table_attention


def is_allowed(
    tokens: Tokens, constraints: Constraints, forced: Tokens = (), *, complete: bool
) -> bool:
    """Return whether a request allows a sequence, or a prefix of one.

    Args:
        tokens: without start and end symbols.
        constraints: bans and blocked repeats do not apply to the tokens of `forced`.
        forced: what the output must start with.
        complete: whether the tokens are a whole sequence; a prefix may still become longer.
    """
    if tokens[: len(forced)] != forced[: len(tokens)]:
        return False
    if complete and len(tokens) < max(len(forced), constraints.min_length):
        return False
    if constraints.banned & set(tokens[len(forced) :]):
        return False
    return not _repeats_ngram(tokens, constraints, len(forced))


def _repeats_ngram(tokens: Tokens, constraints: Constraints, exempt: int) -> bool:
    """Return whether an n-gram repeats an earlier one, against the constraints.

    Args:
        tokens: without start and end symbols.
        constraints: the length of the n-grams, and the tokens whose n-grams may be repeated.
        exempt: number of forced tokens; n-grams that end in one of them may be repeated.
    """
    n = constraints.block_ngram_repeat
    if n == 0:
        return False
    ngrams = [tokens[i : i + n] for i in range(len(tokens) - n + 1)]
    return any(
        ngram in ngrams[:i] and not constraints.ignore_when_blocking & set(ngram)
        for i, ngram in enumerate(ngrams)
        if i + n > exempt
    )


def allowed_part(
    support: EnumeratedSupport, constraints: Constraints, forced: Tokens = ()
) -> EnumeratedSupport:
    """Return the part of the support that a request allows."""
    return EnumeratedSupport(
        sequences={
            tokens: log_prob
            for tokens, log_prob in support.sequences.items()
            if is_allowed(tokens, constraints, forced, complete=True)
        },
        prefixes={
            tokens: log_prob
            for tokens, log_prob in support.prefixes.items()
            if is_allowed(tokens, constraints, forced, complete=False)
        },
        # This support does not limit the bound of excluded sequences. Callers check that bound
        # by `most_excluded`.
        excluded=ALL_EXCLUDED,
    )


def most_excluded(support: EnumeratedSupport, allowed: EnumeratedSupport) -> float:
    """Return the largest log-probability of what a request excludes from the support."""
    others = [p for tokens, p in support.sequences.items() if tokens not in allowed.sequences]
    return max([*others, *support.excluded.values()], default=-math.inf)


def scores_of(
    support: EnumeratedSupport, penalties: Penalties, source_length: int = 0
) -> dict[Tokens, float]:
    """Return the score of each sequence of a support."""
    return {
        tokens: score(penalties, tokens, log_prob, source_length)
        for tokens, log_prob in support.sequences.items()
    }


def score(penalties: Penalties, tokens: Tokens, log_prob: float, source_length: int = 0) -> float:
    """Return the score of a sequence.

    With an OpenNMT-py penalty, `log_prob / length penalty - beta * coverage penalty`; with a
    reward, `log_prob + reward * min(length with the end symbol, ratio * source length)`.

    Args:
        penalties: a length penalty or a length reward, but not both; and a coverage penalty.
        tokens: without start and end symbols.
        log_prob: log-probability of the sequence with its end symbol.
        source_length: tokens of the source; needed for a length reward.
    """
    rewarded_tokens = min(len(tokens) + 1, penalties.length_ratio * source_length)
    log_prob += penalties.length_reward * rewarded_tokens
    cost = 0.0 if penalties.coverage_penalty == "none" else _coverage_cost(penalties, tokens)
    return log_prob / _length_penalty(penalties, tokens) - penalties.beta * cost


def _length_penalty(penalties: Penalties, tokens: Tokens) -> float:
    """Return the divisor of the log-probability, for the length with start and end symbols."""
    length = len(tokens) + 2
    if penalties.length_penalty == "wu":
        return ((5 + length) / 6) ** penalties.alpha
    return float(length) if penalties.length_penalty == "avg" else 1.0


def _coverage_cost(penalties: Penalties, tokens: Tokens) -> float:
    """Return the coverage penalty of a sequence of a `TableStepper`, which has one source position.

    The steps after all prefixes attend to it, the empty prefix and the whole sequence included.
    """
    prefixes = [tokens[:length] for length in range(len(tokens) + 1)]
    covered = sum(map(table_attention, prefixes))
    if penalties.coverage_penalty == "summary":
        return max(covered, 1.0) - 1.0
    return -math.log(min(covered, 1.0)) if covered else math.inf
