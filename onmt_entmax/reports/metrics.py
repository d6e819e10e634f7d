"""Measures of inflected forms: the official ones of CoNLL-SIGMORPHON 2018, task 1.

Word accuracy and mean edit distance, per language and averaged over languages (Cotterell et al.
2018, *The CoNLL-SIGMORPHON 2018 Shared Task: Universal Morphological Reinflection*, section 5).
Forms are compared as they are: no case folding, no Unicode normalisation, no trimming.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """How well a list of words was predicted.

    Attributes:
        words: number of words.
        accuracy: share of words predicted exactly, between 0 and 1.
        edit_distance: mean Levenshtein distance to the reference, in characters.
    """

    words: int
    accuracy: float
    edit_distance: float


@dataclass(frozen=True)
class LanguageScores:
    """Scores per language, in order of name, and their plain average.

    Attributes:
        languages: language name to score.
        average: the mean over languages, each counting the same whatever its size; `words` is the
            total.
    """

    languages: dict[str, Score]
    average: Score


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Levenshtein distance: the fewest insertions, deletions and substitutions, each costing 1.

    Args:
        first, second: strings, compared by code point, or sequences of symbols.
    """
    previous = list(range(len(second) + 1))
    for row, symbol in enumerate(first, start=1):
        current = [row]
        for column, other in enumerate(second, start=1):
            substituted = previous[column - 1] + (symbol != other)
            current.append(min(substituted, previous[column] + 1, current[-1] + 1))
        previous = current
    return previous[-1]


def score(references: Sequence[str], predictions: Sequence[str]) -> Score:
    """Accuracy and mean edit distance of predictions, one for each reference.

    Raises:
        ValueError: the numbers of words differ, or there are none.
    """
    if len(references) != len(predictions):
        raise ValueError(
            f"{len(references)} references but {len(predictions)} predictions: "
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
    """Scores each language by itself and averages them.

    Args:
        languages: the language of each word.
        references: the correct form of each word.
        predictions: the predicted form of each word.

    Raises:
        ValueError: the three lengths differ, or there are no words.
    """
    if not len(languages) == len(references) == len(predictions):
        raise ValueError(
            f"{len(languages)} languages, {len(references)} references and "
            f"{len(predictions)} predictions: give one of each for every word"
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
