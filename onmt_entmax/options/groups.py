"""Options that go together: for both sides of a network, and for a part with an alpha."""

from onmt_entmax.config import ATTENTION_KINDS

# An option for encoder and decoder (or source and target) together, and those for each side alone.
# If a file has both, the option for both sides wins, as in OpenNMT-py.
SIDES_OF = {
    "layers": ("enc_layers", "dec_layers"),
    "rnn_size": ("enc_rnn_size", "dec_rnn_size"),
    "word_vec_size": ("src_word_vec_size", "tgt_word_vec_size"),
}
NOT_SET = -1
"""OpenNMT-py's value of an option for both sides that is not given"""

PARTS_WITH_ALPHA = (
    "generator",
    "global_attention",
    *(f"{kind}_attention" for kind in ATTENTION_KINDS),
)
"""Parts of a network that have the options `PART_function`, such as `softmax`, and `PART_alpha`,
which is only read with the function `entmax`"""
