"""Accuracy and edit distance of inflected forms.

These are the official measures of CoNLL-SIGMORPHON 2018, task 1 (Cotterell et al. 2018, section 5):
for each language and averaged over languages, without case folding or Unicode normalisation. They
compare tokens between spaces, which are characters in files of `prepare sigmorphon`. The data of
2018 has one form for each query; if a query has several, each counts as correct.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from onmt_entmax.strings.units import UNKNOWN


def is_right(reference: str, output: str) -> bool:
    """Return whether an output has the tokens, between spaces, of its reference.

    Training, `evaluate` and `report` all count by this rule. `<unk>` stands for many tokens, so no
    output is right for a reference with `<unk>`.
    """
    tokens = reference.split()
    return output.split() == tokens and UNKNOWN not in tokens


@dataclass(frozen=True)
class WordScore:
    """Accuracy and edit distance of a list of predicted words.

    Attributes:
        words: number of words.
        accuracy: share of words predicted exactly, from 0 to 1; see `is_right`.
        edit_distance: mean Levenshtein distance to the reference, in tokens.
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

    languages: dict[str, WordScore]
    average: WordScore


def correct_forms(sources: Sequence[str], references: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the correct forms of each word, which are all references of its source."""
    forms: dict[str, dict[str, None]] = {}
    for source, reference in zip(sources, references, strict=True):
        forms.setdefault(source, {})[reference] = None
    return [tuple(forms[source]) for source in sources]


def nearest_form(forms: Sequence[str], prediction: str) -> str:
    """Return the correct form that is nearest to a prediction; of several, the first."""
    if len(forms) == 1:
        return forms[0]
    tokens = prediction.split()
    return min(forms, key=lambda form: Levenshtein.distance(form.split(), tokens))


class _Word(NamedTuple):
    """The tokens of a correct form, and those that were predicted, between spaces."""

    reference: str
    prediction: str


def _score(words: Sequence[_Word]) -> WordScore:
    """Return the scores of words; there is at least one."""
    return WordScore(
        words=len(words),
        accuracy=fmean(is_right(word.reference, word.prediction) for word in words),
        edit_distance=fmean(_distance(word.reference, word.prediction) for word in words),
    )


def _distance(reference: str, prediction: str) -> int:
    """Return the Levenshtein distance in tokens."""
    if reference == prediction:  # true for most pairs, and faster than the algorithm
        return 0
    return Levenshtein.distance(reference.split(), prediction.split())


def score_by_language(
    languages: Sequence[str], references: Sequence[str], predictions: Sequence[str]
) -> LanguageScores:
    """Return the scores of each language, and their average.

    Args:
        languages: the language of each word; at least one.
        references: the tokens of each correct form, between spaces.
        predictions: the tokens of each predicted form, between spaces.

    Raises:
        ValueError: if the three lengths differ.
    """
    words: dict[str, list[_Word]] = {language: [] for language in sorted(set(languages))}
    for language, reference, prediction in zip(languages, references, predictions, strict=True):
        words[language].append(_Word(reference, prediction))
    scores = {language: _score(words_of_language) for language, words_of_language in words.items()}
    average = WordScore(
        words=len(references),
        accuracy=fmean(score.accuracy for score in scores.values()),
        edit_distance=fmean(score.edit_distance for score in scores.values()),
    )
    return LanguageScores(scores, average)
