"""The pictures of a report's sentences, drawn by the models that made the report.

A report has no attention and no next tokens, so the models compute them again. Their probabilities
tell whether they are the report's models: sentences of others are left out.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from tqdm import tqdm

from onmt_entmax.cli.messages import warn
from onmt_entmax.errors import UserError, counted
from onmt_entmax.pictures import lattice_of, picture
from onmt_entmax.translator import Translator

# How much a probability of the report and one that is computed again may differ: rounding depends
# on the other sentences of a batch. It changes a log-probability by less than the first number,
# except for tokens at the edge of the support, whose probabilities it changes by less than the
# second.
_LOG_PROB_ROUNDING = 1e-3
_PROB_ROUNDING = 1e-6


def drawings(
    translator: Translator, records: Sequence[dict[str, Any]], wanted: int
) -> Iterator[tuple[int, Any]]:
    """Yield drawings of the first records that have hypotheses, with their positions.

    Args:
        translator: of the models that made the report; it must keep attention.
        records: of the report.
        wanted: drawings, at most.

    Raises:
        UserError: none of them could be drawn.
    """
    drawable = [position for position, record in enumerate(records) if record["hypotheses"]]
    positions = drawable[:wanted]
    # `disable=None` means: unless the standard error is a terminal.
    is_hidden = None if positions else True
    left_out = 0
    for position in tqdm(positions, desc="pictures", unit="sentence", disable=is_hidden):
        content = _draw(translator, records[position])
        if content is None:
            left_out += 1
        else:
            yield position, content
    reason = (
        "this model gives their hypotheses other probabilities than the report says "
        "(is it the report's model, with its -transforms?)"
    )
    if positions and left_out == len(positions):
        raise UserError(f"no sentence can be drawn: {reason}")
    if left_out:
        warn(f"no pictures of {counted(left_out, 'sentence')}: {reason}")


def _draw(translator: Translator, record: dict[str, Any]) -> dict[str, Any] | None:
    """Return the drawing of a record, or None if its probabilities are not those of the models."""
    reader, vocabulary = translator.reader, translator.vocabularies.target
    source = reader.encode(reader.preprocess(record["source"])[0])
    # A report has the tokens where they differ from the text.
    targets = [
        hypothesis.get("tokens", hypothesis["text"]).split() for hypothesis in record["hypotheses"]
    ]
    outputs = [
        tuple(vocabulary.encode(reader.target_of(source.words, target))) for target in targets
    ]
    if not source.words or len(set(outputs)) < len(outputs):
        return None
    lattice = lattice_of(translator, source, outputs)
    log_probs = lattice.log_probs()
    for number, hypothesis in enumerate(record["hypotheses"]):
        if not _are_alike(hypothesis["prob"], log_probs[number]):
            return None
    return picture(translator, source, lattice)


def _are_alike(prob: float, log_prob: float) -> bool:
    """Tell whether a probability of a report and one of the models differ by rounding alone.

    Args:
        prob: of the report, which may be 0.
        log_prob: of the models; a nan is not alike.
    """
    reported = math.log(max(prob, sys.float_info.min))
    computed = max(log_prob, math.log(sys.float_info.min))
    difference = abs(math.exp(computed) - math.exp(reported))
    return abs(computed - reported) <= _LOG_PROB_ROUNDING or difference <= _PROB_ROUNDING
