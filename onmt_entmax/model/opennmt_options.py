"""Turn a configuration into the options that OpenNMT-py's constructors read."""

from dataclasses import asdict
from types import SimpleNamespace

from onmt_entmax.config import ModelConfig
from onmt_entmax.nn.attention import ATTENTIONS, EntmaxGlobalAttention


def opennmt_options(config: ModelConfig) -> SimpleNamespace:
    """Return the namespace for `from_opt` of OpenNMT-py's encoders and decoders.

    OpenNMT-py builds attention with softmax from it, which `build_model` then replaces. A type of
    attention that OpenNMT-py does not know is `dot` here.
    """
    values = asdict(config)
    if ATTENTIONS.get(config.global_attention, EntmaxGlobalAttention) is not EntmaxGlobalAttention:
        values["global_attention"] = "dot"
    return SimpleNamespace(
        **values,
        brnn=config.encoder_type == "brnn",
        enc_rnn_size=config.rnn_size,
        dec_rnn_size=config.rnn_size,
        global_attention_function="softmax",
        # OpenNMT-py's own coverage, copying and supervised alignments, which no model has here.
        coverage_attn=False,
        copy_attn=False,
        reuse_copy_attn=False,
        copy_attn_type="none",
        full_context_alignment=False,
        alignment_layer=-2,
        alignment_heads=0,
    )
