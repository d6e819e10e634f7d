"""The alphas of a network's mappings: their values, and conditions on the options that set them.

The alpha of output probabilities and of a recurrent decoder's attention (`global`) is a number. For
each kind of attention in a Transformer, alpha is a number or is learned.
"""

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

_TRANSFORMER_OPTIONS = tuple(f"{kind}_attention_function" for kind in ATTENTION_KINDS)
_ATTENTION_OPTIONS = ("global_attention_function", *_TRANSFORMER_OPTIONS)

LEARNS_ALPHA = AnyOf(
    *(Equals(option, LEARNED) for option in _TRANSFORMER_OPTIONS),
    *(Equals(option, SHARED) for option in _TRANSFORMER_OPTIONS),
)
"""Condition that some attention learns its alpha; `global` attention cannot"""
HAS_SPARSE_ATTENTION = AnyOf(*(IsOn(option, off="softmax") for option in _ATTENTION_OPTIONS))
"""Condition that some attention, `global` included, is sparse"""
