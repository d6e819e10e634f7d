"""Recurrent models that benchmarks compare: OpenNMT-py's, and ours with the same weights."""

from __future__ import annotations

import copy

import torch
from torch import nn

from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.model import SparseNMTModel
from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.opennmt import Embeddings, InputFeedRNNDecoder, NMTModel, RNNEncoder
from onmt_entmax.recurrence.decoder import FastInputFeedRNNDecoder
from onmt_entmax.recurrence.encoder import FastRNNEncoder

LAYERS = 2
LARGEST_WEIGHT = 0.1  # before training, as OpenNMT-py's option `param_init`


def stock_model(hidden: int, vocabularies: Vocabularies, dropout: float) -> NMTModel:
    """Return OpenNMT-py's bidirectional encoder and input-feeding decoder, with softmax.

    Args:
        hidden: size of word vectors and of each layer.
        vocabularies: vocabularies of source and target.
        dropout: probability.
    """
    source, target = (Embeddings(hidden, len(side), side.pad) for side in vocabularies)
    encoder = RNNEncoder(
        "LSTM",
        bidirectional=True,
        num_layers=LAYERS,
        hidden_size=hidden,
        dropout=dropout,
        embeddings=source,
    )
    decoder = InputFeedRNNDecoder(
        "LSTM",
        bidirectional_encoder=True,
        num_layers=LAYERS,
        hidden_size=hidden,
        attn_type="general",
        dropout=dropout,
        embeddings=target,
    )
    model = NMTModel(encoder, decoder)
    classes = len(vocabularies.target)
    model.generator = nn.Sequential(nn.Linear(hidden, classes), nn.LogSoftmax(dim=-1))
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -LARGEST_WEIGHT, LARGEST_WEIGHT)
    return model


def our_model(
    stock: NMTModel, alpha: float, matmul_dtype: torch.dtype | None = None
) -> SparseNMTModel:
    """Return our model with the weights of `stock`.

    Args:
        stock: a model that `stock_model` returned.
        alpha: alpha of attention and output.
        matmul_dtype: type of large matrix products; None: float32.
    """
    encoder = copy.deepcopy(stock.encoder)
    decoder = copy.deepcopy(stock.decoder)
    # The fast classes have the same weights and no state of their own.
    encoder.__class__ = FastRNNEncoder
    decoder.__class__ = FastInputFeedRNNDecoder
    attention = EntmaxGlobalAttention(decoder.hidden_size, "general", alpha)
    attention.load_state_dict(decoder.attn.state_dict())
    decoder.attn = attention
    linear = stock.generator[0]
    output = OutputLayer(linear.in_features, linear.out_features, alpha)
    output.load_state_dict(linear.state_dict())
    model = SparseNMTModel(encoder, decoder, output)
    model.matmul_dtype = matmul_dtype
    return model.train()


def copy_weights(source: SparseNMTModel, target: NMTModel) -> None:
    """Copy the weights of our model to one of `stock_model`."""
    for part in ("encoder", "decoder"):
        getattr(target, part).load_state_dict(getattr(source, part).state_dict())
    target.generator[0].load_state_dict(source.generator.state_dict())
