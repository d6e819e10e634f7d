"""Alpha of the network's mappings: which attentions have one, and which values it may take."""

from dataclasses import replace

from onmt_entmax.config.conditions import AnyOf, Equals, IsOn
from onmt_entmax.rules import number

ATTENTION_KINDS = ("encoder", "decoder", "context")
"""The attentions of a Transformer: self-attention of encoder and decoder, decoder to source"""
LEARNED = "learned"
"""Value of an attention's alpha if each head learns its own"""
SHARED = "learned_shared"
"""Value of an attention's alpha if all heads of all layers learn one together"""

ALPHA = number(1, 10**6, " (1 is softmax, 2 is sparsemax)")
NUMBER_OR_LEARNED = replace(ALPHA, names=(LEARNED, SHARED))

LEARNS_ALPHA = AnyOf(
    *(
        Equals(f"{kind}_attention_function", function)
        for function in (LEARNED, SHARED)
        for kind in ATTENTION_KINDS
    )
)
"""Condition that some attention learns its alpha"""
HAS_SPARSE_ATTENTION = AnyOf(
    *(IsOn(f"{kind}_attention_function", off="softmax") for kind in ("global", *ATTENTION_KINDS))
)
"""Condition that some attention is sparse; `global` is that of a recurrent decoder"""
