"""Make sacrebleu's measures of translations: BLEU, chrF and TER."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric

from onmt_entmax.errors import UserError
from onmt_entmax.libraries import import_pyonmttok

ONMT = "onmt"
"""Name of OpenNMT's tokeniser, which sacrebleu does not have"""


class NamedMetric(NamedTuple):
    """One of sacrebleu's measures, and the name under which results show it."""

    name: str
    metric: Metric


def make_metrics(
    names: Sequence[str], tokenizers: Sequence[str], *, lowercase: bool
) -> list[NamedMetric]:
    """Return sacrebleu's measures with their names, always in the order BLEU, chrF, TER.

    Args:
        names: some of `bleu`, `chrf` and `ter`.
        tokenizers: tokenisers of BLEU; each gives a measure.
        lowercase: whether BLEU and chrF ignore case.

    Raises:
        UserError: a tokeniser needs a library that is not installed.
    """
    metrics: list[NamedMetric] = []
    if "bleu" in names:
        for tokenizer in tokenizers:
            metrics.append(NamedMetric(*named_bleu(tokenizer, lowercase=lowercase)))
    if "chrf" in names:
        metrics.append(NamedMetric("chrF2", CHRF(lowercase=lowercase)))
    if "ter" in names:
        metrics.append(NamedMetric("TER", TER()))  # always ignores case, as tercom does
    return metrics


def named_bleu(tokenizer: str, *, lowercase: bool) -> tuple[str, BLEU]:
    """Return BLEU and its name, such as `BLEU 13a` for the tokeniser 13a.

    Args:
        tokenizer: one of sacrebleu, or `ONMT`.
        lowercase: whether to ignore case.

    Raises:
        UserError: the tokeniser needs a library that is not installed.
    """
    try:
        bleu = BLEU(
            tokenize="none" if tokenizer == ONMT else tokenizer,
            lowercase=lowercase,
            force=True,  # do not warn of text that is tokenised already
        )
    except (ImportError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"tokeniser {tokenizer}: {reason}") from None
    if tokenizer == ONMT:
        # sacrebleu takes only names of its own tokenisers, so this one is set afterwards.
        bleu.tokenizer = _onmt_tokenizer()
        bleu.tokenizer_signature = "onmt-aggressive"
    return f"BLEU {tokenizer}", bleu


def _onmt_tokenizer() -> Callable[[str], str]:
    """Return a function from a line to the words that `prepare` splits into subwords.

    Raises:
        MissingLibraryError: pyonmttok is not installed.
        BrokenLibraryError: it cannot be imported.
    """
    words = import_pyonmttok("name another tokeniser").Tokenizer("aggressive", no_substitution=True)
    return lambda line: " ".join(words(line))


def quality_of(
    metric: Metric, texts: Sequence[str], references: Sequence[Sequence[str]]
) -> Callable[[Sequence[int]], float]:
    """Return a function that scores the sentences with given numbers, for `report.coverage`.

    Args:
        metric: sacrebleu's measure.
        texts: translations, one for each sentence.
        references: reference translations, one line for each sentence.
    """

    def quality(kept: Sequence[int]) -> float:
        against = [[lines[n] for n in kept] for lines in references]
        return float(metric.corpus_score([texts[n] for n in kept], against).score)

    return quality
