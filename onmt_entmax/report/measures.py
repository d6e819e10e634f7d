"""Counts of certificates, and the accuracy of inflected forms.

Accuracy and edit distance are the official measures of CoNLL-SIGMORPHON 2018, task 1 (Cotterell et
al. 2018, section 5): for each language and averaged over languages, without case folding, Unicode
normalisation or trimming.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from onmt_entmax.data.unknown import UnknownTokens
from onmt_entmax.errors import counted
from onmt_entmax.search.certificate import Level
from onmt_entmax.search.mbr import edit_distance


@dataclass
class Counts:
    """Counts of sentences by what is proven about them."""

    sentences: int = 0
    blank: int = 0
    levels: Counter[str] = field(default_factory=Counter)
    single: int = 0  # proven: the support is a single hypothesis
    several: int = 0  # more than one finished hypothesis
    unfinished: int = 0  # no hypothesis finished within the limits
    impossible: int = 0  # proven: the constraints leave no output
    empty: int = 0  # the first hypothesis has no word
    source: UnknownTokens = field(default_factory=UnknownTokens)

    def count(self, level: Level, finished: int, best: str | None, only: bool) -> None:
        """Count a sentence that is not blank.

        Args:
            level: of its certificate.
            finished: number of finished hypotheses.
            best: text of the first one that is listed; None if none is.
            only: whether the support is proven to be a single hypothesis.
        """
        exhaustive, listed = level == "exhaustive", best is not None
        self.sentences += 1
        self.levels[level] += 1
        self.single += only
        self.several += finished > 1
        self.unfinished += not listed and not exhaustive
        self.impossible += not listed and exhaustive
        self.empty += best is not None and not best.strip()

    def percent(self, count: int) -> float:
        """Return a count in percent of the sentences that are not blank."""
        return round(100 * count / max(self.sentences, 1), 2)

    def as_dict(self) -> dict[str, Any]:
        """Return counts, and rates in percent of the sentences that are not blank."""
        return {
            "sentences": self.sentences,
            "blank_lines": self.blank,
            "certificates": {level: self.levels[level] for level in get_args(Level)},
            "exhaustive_percent": self.percent(self.levels["exhaustive"]),
            "argmax_proven_percent": self.percent(self.sentences - self.levels["none"]),
            "single_hypothesis_percent": self.percent(self.single),
            "several_hypotheses_percent": self.percent(self.several),
            "unfinished": self.unfinished,
            "impossible": self.impossible,
            "empty": self.empty,
            **self.source.as_dict(),
        }

    def advice(self) -> list[str]:
        """Return what to do if most outputs are no use: none, empty ones or nothing proven."""
        if 2 * self.unfinished > self.sentences:
            return ["most sentences have no finished output: train longer, or raise -max_length"]
        found = []
        if 2 * self.empty > self.sentences:
            found.append(
                "most outputs are empty: try -length_penalty avg or -min_length 1, or train longer"
            )
        if self.sentences and self.levels["none"] == self.sentences:
            found.append(
                "nothing is certified: try -search exact, with a larger -budget if need be, or "
                "train longer"
            )
        return found


@dataclass(frozen=True)
class Score:
    """Accuracy of a list of predicted words.

    Attributes:
        words: number of words.
        accuracy: share of words predicted exactly, from 0 to 1.
        edit_distance: mean Levenshtein distance to the reference, in characters.
    """

    words: int
    accuracy: float
    edit_distance: float


@dataclass(frozen=True)
class LanguageScores:
    """Scores for each language, in order of name, and their average.

    Attributes:
        languages: score by language name.
        average: unweighted mean over languages; its `words` is the total.
    """

    languages: dict[str, Score]
    average: Score


def score(references: Sequence[str], predictions: Sequence[str]) -> Score:
    """Return accuracy and mean edit distance of predictions, one for each reference.

    Raises:
        ValueError: if the numbers of words differ, or there are none.
    """
    if len(references) != len(predictions):
        raise ValueError(
            f"{counted(len(references), 'reference')} but "
            f"{counted(len(predictions), 'prediction')}: "
            "give one prediction for each reference"
        )
    if not references:
        raise ValueError("there are no words to score")
    pairs = list(zip(references, predictions, strict=True))
    wrong = [(reference, guess) for reference, guess in pairs if reference != guess]
    return Score(
        words=len(pairs),
        accuracy=(len(pairs) - len(wrong)) / len(pairs),
        edit_distance=sum(edit_distance(*pair) for pair in wrong) / len(pairs),
    )


def score_by_language(
    languages: Sequence[str], references: Sequence[str], predictions: Sequence[str]
) -> LanguageScores:
    """Score each language by itself and average.

    Args:
        languages: the language of each word.
        references: the correct form of each word.
        predictions: the predicted form of each word.

    Raises:
        ValueError: if the three lengths differ, or there are no words.
    """
    if not len(languages) == len(references) == len(predictions):
        raise ValueError(
            f"{counted(len(languages), 'language')}, {counted(len(references), 'reference')} and "
            f"{counted(len(predictions), 'prediction')}: give one of each for every word"
        )
    words: dict[str, list[tuple[str, str]]] = {name: [] for name in sorted(set(languages))}
    for language, *pair in zip(languages, references, predictions, strict=True):
        words[language].append((pair[0], pair[1]))
    scores = {
        language: score([pair[0] for pair in pairs], [pair[1] for pair in pairs])
        for language, pairs in words.items()
    }
    if not scores:
        raise ValueError("there are no words to score")
    average = Score(
        words=len(references),
        accuracy=sum(each.accuracy for each in scores.values()) / len(scores),
        edit_distance=sum(each.edit_distance for each in scores.values()) / len(scores),
    )
    return LanguageScores(scores, average)
