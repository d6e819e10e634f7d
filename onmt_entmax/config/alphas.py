"""Alpha of the network's mappings: which attentions have one, and which values it may take."""

from dataclasses import replace

from onmt_entmax.rules import number

KINDS = ("encoder", "decoder", "context")
"""The attentions of a Transformer: self-attention of encoder and decoder, decoder to source"""
LEARNED = "learned"
"""Value of alpha besides numbers: one for each head, learned"""
SHARED = "learned_shared"
"""Value of alpha besides numbers: one for all heads of all layers, learned"""

ALPHA = number(1, 10**6, " (1 is softmax, 2 is sparsemax)")
NUMBER_OR_LEARNED = replace(ALPHA, names=(LEARNED, SHARED))

NEEDS_LEARNED = " or ".join(
    f"{kind}_attention_function: {alpha}" for alpha in (LEARNED, SHARED) for kind in KINDS
)
"""What an option of learned alphas needs, see `Option.needs`: an attention that has them"""
NEEDS_SPARSE = " or ".join(f"{kind}_attention_function" for kind in ("global", *KINDS))
"""What an option of any sparse attention needs"""
