"""The pictures of a report's sentences, drawn by the models that made the report.

A report has no attention and no next tokens, so the models compute them again. A sentence is left
out if they give its hypotheses other probabilities than the report: then other models made it.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tqdm import tqdm

from onmt_entmax.cli.messages import warn
from onmt_entmax.errors import UserError, counted
from onmt_entmax.pictures import lattice_drawing, lattice_of
from onmt_entmax.report.records import Record
from onmt_entmax.translator import Translator

# A probability that is computed again may differ from that in the report, since rounding depends on
# the other sentences of a batch. Rounding changes the log-probability of a hypothesis by less than
# `_LOG_PROB_ROUNDING`. At the edge of the support, the log-probability of a token may change more,
# but its probability changes by less than `_TOKEN_ROUNDING`.
_LOG_PROB_ROUNDING = 1e-3
_TOKEN_ROUNDING = 1e-6
_LOG_LEAST = math.log(sys.float_info.min)  # stands for the logarithm of 0, and of subnormal floats

# Why sentences are not drawn.
_ADVICE = "is it the report's model, with its -transforms, and without -matmul_dtype bfloat16?"
_NO_SOURCE = f"this model reads no words in their sources ({_ADVICE})"
_EQUAL_HYPOTHESES = f"this model reads several of their hypotheses as the same tokens ({_ADVICE})"
_OTHER_PROBABILITIES = (
    f"this model gives their hypotheses other probabilities than the report says ({_ADVICE})"
)


class _NotDrawnError(Exception):
    """A sentence cannot be drawn; the message is one of the reasons above."""


def drawings(
    translator: Translator, records: Sequence[Record], wanted: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the positions and drawings of the first records that have hypotheses.

    At the end, warn of the records that could not be drawn.

    Args:
        translator: the models that made the report; it must keep attention.
        records: records of the report.
        wanted: largest number of drawings.

    Raises:
        UserError: none of these records could be drawn; raised at the end.
    """
    drawable = [position for position, record in enumerate(records) if record["hypotheses"]]
    positions = drawable[:wanted]
    if not positions:
        return  # a progress bar would show `0 sentences`
    left_out: Counter[str] = Counter()  # sentences, by the reason
    # `disable=None` shows the bar only on a terminal.
    for position in tqdm(positions, desc="pictures", unit="sentence", disable=None):
        try:
            content = _draw(translator, records[position])
        except _NotDrawnError as error:
            left_out[str(error)] += 1
        else:
            yield position, content
    if left_out.total() == len(positions):
        raise UserError(f"no sentence can be drawn: {'; '.join(left_out)}")
    for reason, count in left_out.items():
        warn(f"no pictures of {counted(count, 'sentence')}: {reason}")


def _draw(translator: Translator, record: Record) -> dict[str, Any]:
    """Return the drawing of a record.

    Raises:
        _NotDrawnError: the models cannot have made the record.
    """
    reader, vocabulary = translator.reader, translator.vocabularies.target
    source = reader.encode(reader.preprocess(record["source"]).words)
    if not source.words:
        raise _NotDrawnError(_NO_SOURCE)
    # A report has the tokens where they differ from the text.
    targets = [
        hypothesis.get("tokens", hypothesis["text"]).split() for hypothesis in record["hypotheses"]
    ]
    outputs = [
        tuple(vocabulary.encode(reader.target_of(source.words, target))) for target in targets
    ]
    if len(set(outputs)) < len(outputs):
        raise _NotDrawnError(_EQUAL_HYPOTHESES)
    lattice = lattice_of(translator, source, outputs)
    log_probs = lattice.token_log_probs()
    for number, hypothesis in enumerate(record["hypotheses"]):
        if not is_rounding(hypothesis["prob"], log_probs[number]):
            raise _NotDrawnError(_OTHER_PROBABILITIES)
    return lattice_drawing(translator, source, lattice)


def is_rounding(prob: float, token_log_probs: Sequence[float]) -> bool:
    """Return whether the probabilities of a report and of the models differ by rounding alone.

    Args:
        prob: probability of a hypothesis in the report, which may be 0.
        token_log_probs: log-probabilities that the models give its tokens. Each may be -inf, or
            nan if the weights of a model are not finite.
    """
    if any(map(math.isnan, token_log_probs)):
        return False
    token_probs = [math.exp(log_prob) for log_prob in token_log_probs]
    least = _log_product(max(prob - _TOKEN_ROUNDING, 0.0) for prob in token_probs)
    largest = _log_product(prob + _TOKEN_ROUNDING for prob in token_probs)
    reported = _log_product([prob])
    return least - _LOG_PROB_ROUNDING <= reported <= largest + _LOG_PROB_ROUNDING


def _log_product(probs: Iterable[float]) -> float:
    """Return the logarithm of a product, but at least `_LOG_LEAST`."""
    logs = [math.log(prob) if prob else -math.inf for prob in probs]
    return max(sum(logs), _LOG_LEAST)
