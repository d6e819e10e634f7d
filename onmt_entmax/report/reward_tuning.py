"""Measure BLEU for several length rewards, by reordering n-best lists that were made without one.

A search with the reward might find a better output that the list lacks. The record's bounds often
exclude this: they limit the probability of unlisted outputs, and so their scores, which grow with
the log-probability (`Penalties.attainable`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Any, NamedTuple

from sacrebleu.metrics import BLEU

from onmt_entmax.report.records import Record
from onmt_entmax.search.penalties import Penalties

# With a larger reward, improbable longer outputs would win, and these lists lack them.
_REWARDS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
_RATIOS = (0.8, 1.0, 1.1, 1.2, 1.5)
_SMALLEST = 5e-324  # the smallest positive float, for a probability that is rounded to 0


@dataclass(frozen=True)
class Rewarded:
    """BLEU of the outputs that a length reward puts first.

    Attributes:
        length_reward: what each target token adds to the score, see `Penalties`.
        length_ratio: target tokens for each source token up to which the reward is added.
        bleu: BLEU, from 0 to 100.
        brevity_penalty: brevity penalty of this BLEU, from 0 to 1.
        proven: share of the sentences whose best score is proven by the lists and their bounds.
    """

    length_reward: float
    length_ratio: float
    bleu: float
    brevity_penalty: float
    proven: float

    @property
    def options(self) -> str:
        """The options of `translate`."""
        return f"-length_reward {self.length_reward:g} -length_ratio {self.length_ratio:g}"


def tune_reward(
    records: Sequence[Record], references: Sequence[Sequence[str]], metric: BLEU
) -> list[Rewarded]:
    """Order n-best lists by each length reward, and measure the outputs that come first.

    The first result is that without a reward.

    Args:
        records: records of a report without penalties, one for each sentence.
        references: reference translations, one line for each sentence.
        metric: sacrebleu's BLEU.
    """
    rows = []
    for reward, ratio in [(0.0, Penalties.length_ratio), *product(_REWARDS, _RATIOS)]:
        penalties = Penalties(length_reward=reward, length_ratio=ratio)
        best = [_best(record, penalties) for record in records]
        score = metric.corpus_score([each.text for each in best], references)
        rows.append(
            Rewarded(
                length_reward=reward,
                length_ratio=ratio,
                bleu=score.score,
                brevity_penalty=score.bp,
                proven=fmean(each.is_proven for each in best),
            )
        )
    return rows


class _BestText(NamedTuple):
    """The listed text of the best score, and whether no unlisted one can have a better score."""

    text: str
    is_proven: bool


def _best(record: Record, penalties: Penalties) -> _BestText:
    """Return the best text of a record by its score with penalties."""
    listed = record["hypotheses"]
    if not listed:
        return _BestText(record.get("unfinished", ""), is_proven=False)
    source_tokens = record["source_tokens"]
    scores = [_score(hypothesis, penalties, source_tokens) for hypothesis in listed]
    best = max(scores)
    is_proven = all(
        # Without a length penalty, what is attainable does not depend on the length limit.
        best >= penalties.attainable(log_bound, max_length=0, source_length=source_tokens)
        for log_bound in _log_bounds_of_others(record)
    )
    return _BestText(listed[scores.index(best)]["text"], is_proven)


def _log_bounds_of_others(record: Record) -> list[float]:
    """Return bounds of the log-probabilities of outputs that a record does not list, by kind.

    The list is ordered by probability, so what `-n_best` left out is not above its last output.
    """
    listed = record["hypotheses"]
    bounds = []
    if record["certificate"] != "exhaustive":  # some outputs may not have been found
        bounds.append(record["bound"])
    if record["finished"] > len(listed):  # some were found and left out
        bounds.append(listed[-1]["prob"])
    return [math.log(max(bound, _SMALLEST)) for bound in bounds]


def _score(hypothesis: dict[str, Any], penalties: Penalties, source_tokens: int) -> float:
    """Return the score of a listed hypothesis."""
    length = len(hypothesis.get("tokens", hypothesis["text"]).split())
    return penalties.score(
        hypothesis["log_prob"], length, attention=None, source_length=source_tokens
    )
