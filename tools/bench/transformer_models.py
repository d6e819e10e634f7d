"""Transformers that benchmarks compare: ours with an alpha, and with OpenNMT-py's attention."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.nn.multi_headed_attention import EntmaxMultiHeadedAttention
from onmt_entmax.opennmt import MultiHeadedAttention, NMTModel, TransformerEncoder


@dataclass(frozen=True)
class Size:
    """Sizes of a Transformer.

    Attributes:
        layers: number of layers of the encoder, and of the decoder.
        hidden: size of word vectors and of each layer's output.
        heads: number of heads of each attention.
        feed_forward: hidden size of feed-forward networks.
    """

    layers: int
    hidden: int
    heads: int
    feed_forward: int


SIZES = {
    "base": Size(layers=6, hidden=512, heads=8, feed_forward=2048),
    "small": Size(layers=3, hidden=256, heads=4, feed_forward=1024),
    "tiny": Size(layers=1, hidden=32, heads=2, feed_forward=64),  # for smoke tests
}
NAMED_ALPHAS: dict[str, float | str] = {"softmax": 1.0, "stock": 1.0, "learned": "learned"}


def model_of(
    name: str, vocabularies: Vocabularies, size: Size, *, output_alpha: float, dropout: float
) -> SparseNMTModel:
    """Return the model of a contender; the weights of all contenders are the same.

    Args:
        name: one of `NAMED_ALPHAS`, or the alpha of all attention as text.
        vocabularies: vocabularies of source and target, which are the same one.
        size: size of the model.
        output_alpha: alpha of the output layer.
        dropout: probability, also of attention.
    """
    alpha = NAMED_ALPHAS[name] if name in NAMED_ALPHAS else float(name)
    torch.manual_seed(1)
    model = build_model(
        ModelConfig(
            encoder_type="transformer",
            decoder_type="transformer",
            enc_layers=size.layers,
            dec_layers=size.layers,
            rnn_size=size.hidden,
            src_word_vec_size=size.hidden,
            tgt_word_vec_size=size.hidden,
            heads=size.heads,
            transformer_ff=size.feed_forward,
            position_encoding=True,
            share_embeddings=True,
            share_decoder_embeddings=True,
            param_init=0.0,
            param_init_glorot=True,
            encoder_attention_alpha=alpha,
            decoder_attention_alpha=alpha,
            context_attention_alpha=alpha,
            generator_alpha=output_alpha,
            dropout=dropout,
            attention_dropout=dropout,
        ),
        vocabularies,
    )
    if name == "stock":
        use_stock(model)
    return model.train()


def stock_model(vocabularies: Vocabularies, size: Size, dropout: float) -> NMTModel:
    """Return OpenNMT-py's model, with softmax and the weights of ours.

    Args:
        vocabularies: see `model_of`.
        size: size of the model.
        dropout: probability, also of attention.
    """
    ours = model_of("stock", vocabularies, size, output_alpha=1.0, dropout=dropout)
    # Our encoder has the parts of OpenNMT-py's, which it extends by methods alone.
    ours.encoder.__class__ = TransformerEncoder
    model = NMTModel(ours.encoder, ours.decoder)
    words, hidden = ours.generator.weight.shape
    linear = nn.Linear(hidden, words)
    linear.weight, linear.bias = ours.generator.weight, ours.generator.bias
    model.generator = nn.Sequential(linear, nn.LogSoftmax(dim=-1))
    return model.train()


def use_stock(model: nn.Module) -> None:
    """Replace the attention modules of a model by OpenNMT-py's, with the same weights."""
    for part in [*model.modules()]:  # a list, since the model changes
        for name, child in part.named_children():
            if isinstance(child, EntmaxMultiHeadedAttention):
                stock = MultiHeadedAttention(
                    child.head_count,
                    child.model_dim,
                    dropout=child.dropout.p,
                    max_relative_positions=child.max_relative_positions,
                )
                stock.load_state_dict(child.state_dict())
                setattr(part, name, stock)
