"""Validation: measures on the development set, which choose the best checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from onmt_entmax.config.data import HAS_DEVELOPMENT_SET
from onmt_entmax.config.declaring import COUNT, FEW, SIZE, option
from onmt_entmax.config.topics import VALIDATION
from onmt_entmax.config.training import TrainingConfig
from onmt_entmax.errors import counted
from onmt_entmax.rules import FLAG, one_of, whole

DECODED = ("exact_match", "macro_accuracy", "bleu")
"""Measures for which a validation decodes outputs; the others are computed with the loss"""


@dataclass(frozen=True)
class ValidationConfig:
    """Measures and sizes of a validation.

    Attributes are options. One of them belongs to `TrainingConfig`:

    Attributes:
        selection: measure that chooses the best checkpoint; some need decoding, see `DECODED`.
    """

    selection: str = TrainingConfig.selection
    valid_batch_size: int = option(32, SIZE, help="Sentences per batch of the development set.")
    valid_loss_size: int = option(
        0, COUNT, help="Sentences for the loss; 0: all.", topic=VALIDATION
    )
    valid_decode_size: int = option(
        1000, COUNT, help="Sentences to decode; 0: all.", topic=VALIDATION
    )
    valid_beam_size: int = option(1, FEW, help="Beam of the decoding.", topic=VALIDATION)
    max_length: int = option(
        100, whole(1, 10**6), help="Longest output of the decoding, in tokens.", topic=VALIDATION
    )
    calibrate: bool = option(
        False,
        FLAG,
        help="Multiply the output's scores by the number that fits corpus valid best.",
        topic=VALIDATION,
        needs=HAS_DEVELOPMENT_SET,
    )
    valid_bleu_tokenize: str = option(
        "13a",
        one_of("13a", "intl", "zh", "char", "none"),
        help="Tokeniser of sacrebleu for `bleu`.",
        topic=VALIDATION,
    )

    def conditions(self, measure: str) -> str:
        """Return how a measure is taken, such as `at most 1,000 pairs, greedy`.

        The result is empty for a loss over all pairs.
        """
        decoded = measure in DECODED
        size = self.valid_decode_size if decoded else self.valid_loss_size
        conditions = [f"at most {counted(size, 'pair')}"] if size else []
        if decoded:
            beam = self.valid_beam_size
            conditions.append(f"beam {beam}" if beam > 1 else "greedy")
        return ", ".join(conditions)
