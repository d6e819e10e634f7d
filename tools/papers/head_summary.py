"""Types of the measures of a model's attention heads, as heads.json has them.

`Measures.summary` makes them, and `head_tables.py` defines the measures in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

ByLayer = Sequence[float]
ByHead = Sequence[Sequence[float]]  # [layer][head]


class OffsetSummary(TypedDict):
    """Measures of a self-attention at one offset from a token to the one that it attends to."""

    share_largest: ByHead
    mean_weight: ByHead
    median_weight: ByHead


class InterrogationSummary(TypedDict):
    """Weights that interrogative words give to the last token; None without such words."""

    words_in_questions: int
    weight_on_question_mark: ByHead | None
    words_elsewhere: int
    weight_on_last_token: ByHead | None


class KindSummary(TypedDict):
    """Measures of each kind of attention."""

    alpha: ByHead
    attended: ByHead
    density: ByHead
    density_histogram: Sequence[float]
    density_by_layer: ByLayer
    divergence: ByLayer


class SelfAttentionSummary(KindSummary):
    """Measures of the encoder and of the decoder's self-attention."""

    positional: dict[str, OffsetSummary]  # by offset: "-1" is the token before


class EncoderSummary(SelfAttentionSummary):
    """Measures of the encoder."""

    inside_cluster: ByHead
    inside_cluster_of_several: ByHead | None  # None: the corpus has no word of several subwords
    merging: ByHead
    interrogation: InterrogationSummary


class ModelSummary(TypedDict):
    """Measures of a model, by kind of attention."""

    model: str  # its folder
    sentences: int
    encoder: EncoderSummary
    decoder: SelfAttentionSummary
    context: KindSummary


Models = Mapping[str, ModelSummary]  # by the name of the model, as in heads.json


def by_kind(model: ModelSummary) -> dict[str, KindSummary]:
    """Return the measures that all kinds of attention have, in the order of `ATTENTION_KINDS`."""
    return {"encoder": model["encoder"], "decoder": model["decoder"], "context": model["context"]}
