"""BLEU, chrF and TER by sacrebleu."""

from collections.abc import Callable, Sequence
from typing import Any

from sacrebleu.metrics import BLEU, CHRF, TER

from onmt_entmax.errors import UserError
from onmt_entmax.libraries import pyonmttok

ONMT = "onmt"  # the tokeniser that sacrebleu does not have


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
