"""Counts of certificates, and the accuracy of inflected forms.

Accuracy and edit distance are the official measures of CoNLL-SIGMORPHON 2018, task 1 (Cotterell et
al. 2018, section 5): for each language and averaged over languages, without case folding or Unicode
normalisation. They compare tokens between spaces, which are characters in files of `prepare
sigmorphon`. Their data has one form for each query; of several, any is correct.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, get_args

from rapidfuzz.distance import Levenshtein

from onmt_entmax.data.unknown import UnknownTokens
from onmt_entmax.report.tables import aligned_table
from onmt_entmax.search.certificate import Level
from onmt_entmax.strings.units import UNKNOWN


@dataclass
class Counts:
    """Counts of sentences by what is proven about them."""

    sentences: int = 0
    blank: int = 0
    levels: Counter[str] = field(default_factory=Counter)
    single: int = 0  # proven: the support is a single hypothesis
    several: int = 0  # more than one finished hypothesis
    unfinished: int = 0  # no hypothesis finished within the limits
    impossible: int = 0  # proven: no output is possible
    empty: int = 0  # the first hypothesis has no word
    abstained: int = 0  # the output file has an empty line in its place
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
            "abstained": self.abstained,
            **self.source.as_dict(),
        }

    def advice(self) -> dict[str, str]:
        """Return why most outputs are no use (none, empty or not proven), and what to do."""
        if 2 * self.unfinished > self.sentences:
            advice = "train longer, or raise -max_length"
            return {"most sentences have no finished output": advice}
        found = {}
        if 2 * self.empty > self.sentences:
            advice = "try -length_reward 1 or -min_length 1, or train longer"
            found["most outputs are empty"] = advice
        if self.sentences and self.levels["none"] == self.sentences:
            advice = "try -search exact, with a larger -budget if need be, or train longer"
            found["nothing is certified"] = advice
        return found


def rate_lines(rates: Mapping[str, Any], best: str = "most probable") -> list[str]:
    """Return the rates of a summary as aligned lines; `best` names the first hypotheses."""
    described = {
        "every possible output found (exhaustive)": ("exhaustive_percent", "%"),
        f"{best} output proven (or the above)": ("argmax_proven_percent", "%"),
        "minimum Bayes risk proven": ("mbr_proven_percent", "%"),
        "not the most probable output": ("mbr_other_percent", "%"),
        "only one output possible": ("single_hypothesis_percent", "%"),
        "more than one output found": ("several_hypotheses_percent", "%"),
        "source tokens outside the vocabulary": ("unknown_percent", "%"),
        "next tokens of nonzero probability": ("mean_output_support", "per prefix searched"),
        "source positions of nonzero attention": ("mean_attention_support", "per step"),
    }
    return [
        f"  {label:43} {rates[name]:6.2f} {unit}"
        for label, (name, unit) in described.items()
        if name in rates and (name != "unknown_percent" or rates["unknown_tokens"])
    ]


def coverage_text(curve: Sequence[Coverage], measure: str) -> str:
    """Return a curve as a table; ``measure`` names the quality."""
    rows = [["kept", "share", measure]]
    rows += [
        [
            each.rule,
            f"{100 * each.share:.2f} %",
            "" if each.quality is None else f"{each.quality:.2f}",
        ]
        for each in curve
    ]
    return aligned_table(rows)


def is_right(reference: str, output: str) -> bool:
    """Whether an output has the tokens, between spaces, of its reference.

    Training, `evaluate` and `report` count so. `<unk>` stands for many tokens, so a reference with
    it has no right output.
    """
    tokens = reference.split()
    return output.split() == tokens and UNKNOWN not in tokens


@dataclass(frozen=True)
class Score:
    """Accuracy of a list of predicted words.

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

    languages: dict[str, Score]
    average: Score


def mcnemar(won: int, lost: int) -> float:
    """Return the two-sided p-value of McNemar's exact test (McNemar 1947).

    Args:
        won: words that only the first system gets right.
        lost: words that only the second does.
    """
    number, few = won + lost, min(won, lost)
    # Terms of the binomial tail from the largest one down, in floats: the integers of a large table
    # have millions of digits.
    if number <= 1000:
        term = math.comb(number, few) / 2**number
    else:
        logs = math.lgamma(number + 1) - math.lgamma(few + 1) - math.lgamma(number - few + 1)
        term = math.exp(logs - number * math.log(2))
    tail = 0.0
    for k in range(few, -1, -1):
        tail += term
        term = term * k / (number - k + 1)
        if term < 1e-17 * tail:
            break
    return min(1.0, 2 * tail)


def comparison(
    languages: Iterable[str], right: Iterable[bool], other: Iterable[bool]
) -> dict[str, dict[str, Any]]:
    """Return the words that one side alone has right, and p: by language, and of `all` words.

    A language named all is `all (language)`.

    Args:
        languages: of each word.
        right: whether one side has it right.
        other: whether the other side has.
    """
    counts: dict[str, list[int]] = {}
    for language, ours, theirs in zip(languages, right, other, strict=True):
        count = counts.setdefault(language, [0, 0])
        count[0] += ours and not theirs
        count[1] += theirs and not ours
    named = {"all (language)" if name == "all" else name: counts[name] for name in sorted(counts)}
    named["all"] = [sum(each) for each in zip(*counts.values(), strict=True)]
    return {
        name: {"won": won, "lost": lost, "p": mcnemar(won, lost)}
        for name, (won, lost) in named.items()
    }


def comparison_text(compared: Mapping[str, Mapping[str, Any]], other: str) -> str:
    """Return a comparison as a table; `other` names the other side."""
    rows = [["language", "only this right", f"only {other}", "p"]]
    for name, each in compared.items():
        rows.append([name, str(each["won"]), str(each["lost"]), f"{each['p']:.4f}"])
    return aligned_table(rows)


@dataclass(frozen=True)
class Coverage:
    """How many outputs are kept by some rule, and the quality of those.

    Attributes:
        rule: such as `p >= 0.9`.
        share: of the outputs that are kept, from 0 to 1.
        quality: of these, as the caller measures it; None if none is kept.
    """

    rule: str
    share: float
    quality: float | None


THRESHOLDS = (0.0, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99, 0.999)


def coverage(
    records: Sequence[dict[str, Any]], quality: Callable[[Sequence[int]], float]
) -> list[Coverage]:
    """Return the curve of coverage against quality, by probability and by certificate.

    No rule keeps an output that `translate -abstain` left out.

    Args:
        records: of a report, as `read_report` yields them.
        quality: of the outputs with these numbers, such as their accuracy.
    """
    # Blank lines are not counted as sentences.
    spoken = [n for n, record in enumerate(records) if record["source"].strip()]
    best = [output_of(record)[1] for record in records]
    rules = [
        (f"p >= {least:g}" if least else "all", [p >= least for p in best]) for least in THRESHOLDS
    ]
    order = {"none": 0, "optimal": 1, "exhaustive": 2}
    levels = [3 if is_only(r) else order[r["certificate"]] for r in records]
    for least, name in ((1, "optimal or more"), (2, "exhaustive"), (3, "only one possible")):
        rules.append((name, [level >= least for level in levels]))
    curve = []
    for rule, kept in rules:
        numbers = [n for n in spoken if kept[n] and not records[n].get("abstained")]
        measured = quality(numbers) if numbers else None
        curve.append(Coverage(rule, len(numbers) / max(len(spoken), 1), measured))
    return curve


def output_of(record: dict[str, Any]) -> tuple[str, float]:
    """Return the text that `translate` chose, and its probability, as `Answer.prob`."""
    listed = record["hypotheses"]
    if not listed:
        return record.get("unfinished", ""), 0.0
    text = record["mbr"]["ranking"][0]["text"] if "mbr" in record else listed[0]["text"]
    return text, sum(each["prob"] for each in listed if each["text"] == text)


def is_only(record: dict[str, Any]) -> bool:
    """Tell whether the support is proven to be a single hypothesis (as `SearchResult.only`)."""
    alone = record["certificate"] == "exhaustive" and record["finished"] == 1
    return alone and not record.get("excluded")


def correct_forms(sources: Sequence[str], references: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the correct forms of each word, which are all references of its source."""
    forms: dict[str, dict[str, None]] = {}
    for source, reference in zip(sources, references, strict=True):
        forms.setdefault(source, {})[reference] = None
    return [tuple(forms[source]) for source in sources]


def nearest_form(forms: Sequence[str], prediction: str) -> str:
    """Return the correct form with which a prediction is compared, the first of the nearest."""
    if len(forms) == 1:
        return forms[0]
    tokens = prediction.split()
    return min(forms, key=lambda form: Levenshtein.distance(form.split(), tokens))


def score(pairs: Sequence[tuple[str, str]]) -> Score:
    """Return the scores of pairs of reference and prediction, of which there is at least one."""
    return Score(
        words=len(pairs),
        accuracy=fmean(is_right(*pair) for pair in pairs),
        edit_distance=fmean(Levenshtein.distance(a.split(), b.split()) for a, b in pairs),
    )


def score_by_language(
    languages: Sequence[str], references: Sequence[str], predictions: Sequence[str]
) -> LanguageScores:
    """Score each language by itself and average.

    Args:
        languages: the language of each word; at least one.
        references: the tokens of each correct form, between spaces.
        predictions: likewise of each predicted form.

    Raises:
        ValueError: if the three lengths differ.
    """
    words: dict[str, list[tuple[str, str]]] = {name: [] for name in sorted(set(languages))}
    for language, *pair in zip(languages, references, predictions, strict=True):
        words[language].append((pair[0], pair[1]))
    scores = {language: score(pairs) for language, pairs in words.items()}
    average = Score(
        words=len(references),
        accuracy=fmean(each.accuracy for each in scores.values()),
        edit_distance=fmean(each.edit_distance for each in scores.values()),
    )
    return LanguageScores(scores, average)
