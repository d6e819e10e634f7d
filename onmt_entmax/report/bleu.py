"""BLEU, chrF and TER by sacrebleu, differences between systems, and BLEU by length reward."""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from onmt_entmax.errors import UserError
from onmt_entmax.libraries import pyonmttok
from onmt_entmax.search.penalties import Penalties

# A larger reward buys improbable tokens, which lists made without it do not show.
REWARDS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
RATIOS = (0.8, 1.0, 1.1, 1.2, 1.5)
_SMALLEST = 5e-324  # the smallest positive float, as 0 has no logarithm
ONMT = "onmt"  # the tokeniser that sacrebleu does not have


@dataclass(frozen=True)
class SystemScore:
    """One measure of one system; only a comparison of systems has more than `value`.

    Attributes:
        value: the measure, out of 100.
        mean: mean over the bootstrap samples.
        half_width: half of the 95 % confidence interval around that mean.
        p_value: of the difference from the first system; None for the first system.
    """

    value: float
    mean: float | None = None
    half_width: float | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class Measure:
    """One measure of all systems, in their order."""

    name: str
    signature: str
    scores: tuple[SystemScore, ...]


def make_metrics(
    names: Sequence[str], tokenizers: Sequence[str], lowercase: bool
) -> list[tuple[str, Any]]:
    """Return sacrebleu's measures with their names.

    Raises:
        UserError: a tokeniser needs a library that is not installed.
    """
    metrics: list[tuple[str, Any]] = []
    if "bleu" in names:
        for tokenizer in tokenizers:
            metrics.append((f"BLEU {tokenizer}", _bleu(tokenizer, lowercase)))
    if "chrf" in names:
        metrics.append(("chrF2", CHRF(lowercase=lowercase)))
    if "ter" in names:
        metrics.append(("TER", TER()))  # always ignores case, as tercom does
    return metrics


def _bleu(tokenizer: str, lowercase: bool) -> BLEU:
    """Return BLEU with a tokeniser of sacrebleu, or that of OpenNMT.

    Raises:
        UserError: the tokeniser needs a library that is not installed.
    """
    try:
        bleu = BLEU(
            tokenize="none" if tokenizer == ONMT else tokenizer,
            lowercase=lowercase,
            force=True,  # no warning of text that is tokenised already
        )
    except (ImportError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"tokeniser {tokenizer}: {reason}") from None
    if tokenizer == ONMT:
        bleu.tokenizer = _onmt_tokenizer()
        bleu.tokenizer_signature = "onmt-aggressive"
    return bleu


def _onmt_tokenizer() -> Callable[[str], str]:
    """Return a function from a line to the words that `prepare` splits into subwords.

    Raises:
        MissingLibraryError: pyonmttok is not installed.
    """
    words = pyonmttok("name another tokeniser").Tokenizer("aggressive", no_substitution=True)
    return lambda line: " ".join(words(line))


def quality_of(
    metric: Any, texts: Sequence[str], references: Sequence[Sequence[str]]
) -> Callable[[Sequence[int]], float]:
    """Return a function from numbers of sentences to their score, for `report.coverage`."""

    def quality(kept: Sequence[int]) -> float:
        against = [[lines[n] for n in kept] for lines in references]
        return float(metric.corpus_score([texts[n] for n in kept], against).score)

    return quality


def compare(
    systems: Sequence[tuple[str, list[str]]],
    references: list[list[str]],
    metrics: Sequence[tuple[str, Any]],
    resamples: int,
    nbest: int = 1,
) -> list[Measure]:
    """Measure systems; compare several with the first by a paired bootstrap test.

    Args:
        systems: names and translations, `nbest` lines for each sentence.
        references: reference translations, one line for each sentence.
        metrics: names and sacrebleu's measures.
        resamples: number of bootstrap samples; 0 compares nothing.
        nbest: above 1, each measure is followed by that of the oracle.
    """
    measures = []
    first = [(name, lines[::nbest]) for name, lines in systems]
    for name, metric in metrics:
        if len(systems) > 1 and resamples:
            test = PairedTest(list(first), {name: metric}, references, "bs", resamples)
            signatures, results = test()
            (only_name,) = signatures
            compared: list[Any] = results[only_name]
            scores = [_score(result, result.score == compared[0].score) for result in compared]
            signature = str(signatures[only_name])
        else:
            scores = [
                SystemScore(metric.corpus_score(lines, references).score) for _, lines in first
            ]
            signature = str(metric.get_signature())
        measures.append(Measure(name, signature, tuple(scores)))
        if nbest > 1:
            best = [oracle(lines, references, metric, nbest) for _, lines in systems]
            scores = [SystemScore(metric.corpus_score(lines, references).score) for lines in best]
            measures.append(Measure(f"{name}, best of {nbest}", signature, tuple(scores)))
    return measures


def oracle(lines: list[str], references: list[list[str]], metric: Any, nbest: int) -> list[str]:
    """Return for each sentence the hypothesis with the best sentence-level score.

    Blank lines fill up a list of fewer hypotheses; they are chosen only if the first is blank.
    """
    metric = copy.copy(metric)
    metric.effective_order = True  # BLEU: a sentence without any 4-gram is not 0
    sign = -1 if isinstance(metric, TER) else 1

    def best(sentence: int) -> str:
        one, *others = lines[sentence * nbest : (sentence + 1) * nbest]
        hypotheses = dict.fromkeys([one, *filter(None, others)])
        against = [texts[sentence] for texts in references]
        return max(hypotheses, key=lambda text: sign * metric.sentence_score(text, against).score)

    return [best(sentence) for sentence in range(len(references[0]))]


@dataclass(frozen=True)
class Rewarded:
    """BLEU of the outputs that a length reward puts first."""

    length_reward: float
    length_ratio: float
    bleu: float
    brevity_penalty: float
    proven: float
    """Share of the sentences whose best score is proven by the lists and their bounds."""

    @property
    def options(self) -> str:
        """The options of `translate`."""
        return f"-length_reward {self.length_reward:g} -length_ratio {self.length_ratio:g}"


def tune_reward(
    records: Sequence[dict[str, Any]], references: Sequence[Sequence[str]], metric: BLEU
) -> list[Rewarded]:
    """Order n-best lists by each length reward, none first, and measure the best outputs.

    Args:
        records: of a report without penalties, one for each sentence.
        references: reference translations, one line for each sentence.
        metric: sacrebleu's BLEU.
    """
    rows = []
    for reward, ratio in [(0.0, Penalties.length_ratio), *product(REWARDS, RATIOS)]:
        penalties = Penalties(length_reward=reward, length_ratio=ratio)
        texts, proven = zip(*(_best(record, penalties) for record in records), strict=True)
        score = metric.corpus_score(texts, references)
        rows.append(Rewarded(reward, ratio, score.score, score.bp, sum(proven) / len(proven)))
    return rows


def _best(record: dict[str, Any], penalties: Penalties) -> tuple[str, bool]:
    """Return the listed text of the best score, and whether no output has a better one."""
    listed = record["hypotheses"]
    if not listed:
        return record.get("unfinished", ""), False
    source_tokens, scores = record["source_tokens"], []
    for hypothesis in listed:
        length = len(hypothesis.get("tokens", hypothesis["text"]).split())
        scores.append(penalties.score(hypothesis["log_prob"], length, None, source_tokens))
    best = max(scores)
    bounds = []  # of the probabilities of outputs that are not listed
    if record["certificate"] != "exhaustive":
        bounds.append(record["bound"])
    if record["finished"] > len(listed):
        bounds.append(listed[-1]["prob"])
    proven = all(
        best >= penalties.attainable(math.log(max(bound, _SMALLEST)), 0, source_tokens)
        for bound in bounds
    )
    return listed[scores.index(best)]["text"], proven


def _score(result: Any, equals_the_first: bool) -> SystemScore:
    """Return a result of the bootstrap, with p = 1 for the same score as the first system's.

    There sacrebleu, which counts differences above 0, may report the least possible p.
    """
    p_value = result.p_value
    if p_value is not None:
        p_value = 1.0 if equals_the_first else float(p_value)
    return SystemScore(float(result.score), float(result.mean), float(result.ci), p_value)
