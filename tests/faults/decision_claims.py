"""Claims of decisions by minimum Bayes risk, checked against the probability of every output.

The levels of a decision:

none    a listed text may have a larger expected utility than the choice
found   no listed text has a larger one
proven  no text has a larger one
exact   all that the model can write is listed, and none of it has a larger one
"""

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from onmt_entmax.search.mbr import Decision
from onmt_entmax.search.utilities import Utility, utilities
from tests.search.utility_definitions import compared_parts

LETTERS = "abcdefgh"  # of tokens 0 to 7
# Twice the margin of a decision, for sums of probabilities in float32.
_TOLERANCE = 2e-5
_UNLISTED_TEXTS = 5  # drawn to be compared with a decision
_LONGEST_TEXT = 6  # of these, in tokens


class Truth(NamedTuple):
    """The distribution of a model over texts."""

    probabilities: Mapping[str, float]
    """Probability of each text within the length limit."""
    open_mass: float
    """Probability of everything beyond it."""

    def expected_utilities(self, utility: Utility, texts: Sequence[str]) -> dict[str, float]:
        """Return the expected utility of texts, without what is beyond the length limit."""
        if utility == "exact_match":
            return {text: self.probabilities.get(text, 0.0) for text in texts}
        table = utilities(utility, texts, list(self.probabilities))
        expected = table @ list(self.probabilities.values())
        return dict(zip(texts, expected.tolist(), strict=True))


def check_decision(decision: Decision | None, truth: Truth, rng: random.Random) -> str:
    """Check a decision against the probability of every output.

    Args:
        decision: None if the search found nothing.
        truth: the model's distribution.
        rng: draws texts that the model does not write.

    Returns:
        The level of the decision, or "no text" without one.
    """
    if decision is None:
        return "no text"
    # Like `decision.expected`, these leave out texts beyond the length limit.
    true_utilities = truth.expected_utilities(decision.utility, list(truth.probabilities))
    _check_expected_utilities(decision, true_utilities)
    if decision.level == "exact":
        _check_that_all_texts_are_listed(decision, truth)
    if decision.level != "none":
        _check_choice(decision, truth, {text: true_utilities[text] for text in decision.texts})
    if decision.level in ("exact", "proven"):
        _check_choice(decision, truth, true_utilities)
    if decision.level == "proven":
        _check_choice_against_unlisted_texts(decision, truth, true_utilities, rng)
    return decision.level


def _check_expected_utilities(decision: Decision, true_utilities: Mapping[str, float]) -> None:
    """Check that each expected utility is a lower bound, and no further below than the slack.

    Args:
        decision: with its expected utilities.
        true_utilities: the true expected utility of each text.
    """
    for text, least in zip(decision.texts, decision.expected, strict=True):
        assert least - _TOLERANCE <= true_utilities[text] <= least + decision.slack + _TOLERANCE


def _check_that_all_texts_are_listed(decision: Decision, truth: Truth) -> None:
    """Check that an exact decision lists every possible text."""
    assert truth.open_mass < _TOLERANCE
    assert set(decision.texts) == set(truth.probabilities)


def _check_choice(decision: Decision, truth: Truth, rivals: Mapping[str, float]) -> None:
    """Check that no other text has a larger expected utility than the choice.

    Args:
        decision: whose first text is the choice.
        truth: the model's distribution.
        rivals: texts with their expected utilities, the choice among them.
    """
    # Outputs beyond the limit may be right: then another text gains at most their probability.
    gain = 0.0 if decision.utility == "exact_match" else truth.open_mass
    choice = decision.texts[0]
    others = [utility + gain for text, utility in rivals.items() if text != choice]
    assert rivals[choice] >= max(others, default=0.0) - _TOLERANCE


def _check_choice_against_unlisted_texts(
    decision: Decision, truth: Truth, true_utilities: Mapping[str, float], rng: random.Random
) -> None:
    """Check that random texts which the model does not write are no better than the choice."""
    unlisted = _draw_unlisted_texts(decision, rng)
    expected = truth.expected_utilities(decision.utility, unlisted)
    assert true_utilities[decision.texts[0]] >= max(expected.values(), default=0.0) - _TOLERANCE


def _draw_unlisted_texts(decision: Decision, rng: random.Random) -> list[str]:
    """Return a few random texts that no listed one equals for the utility."""
    drawn = [
        " ".join(rng.choices(LETTERS, k=rng.randint(0, _LONGEST_TEXT)))
        for _ in range(_UNLISTED_TEXTS)
    ]
    listed = [compared_parts(decision.utility, text) for text in decision.texts]
    return [text for text in drawn if compared_parts(decision.utility, text) not in listed]
