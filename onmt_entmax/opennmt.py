"""Import all that is used of OpenNMT-py, in this one place and without its warnings."""

# ruff: noqa: F401
from onmt_entmax.libraries import importing_opennmt, without_warnings

with without_warnings(), importing_opennmt():
    from onmt.constants import DefaultTokens
    from onmt.decoders import TransformerDecoder, str2dec
    from onmt.decoders.decoder import InputFeedRNNDecoder, StdRNNDecoder
    from onmt.encoders import MeanEncoder, TransformerEncoder, str2enc
    from onmt.encoders.rnn_encoder import RNNEncoder
    from onmt.models import NMTModel
    from onmt.modules import AverageAttention, Embeddings, GlobalAttention, MultiHeadedAttention
    from onmt.opts import train_opts, translate_opts
    from onmt.transforms import AVAILABLE_TRANSFORMS, Transform, TransformPipe
    from onmt.transforms.tokenize import (
        BPETransform,
        ONMTTokenizerTransform,
        SentencePieceTransform,
    )
    from onmt.utils.loss import NMTLossCompute
    from onmt.utils.misc import relative_matmul, sequence_mask
    from onmt.utils.optimizers import Optimizer, build_torch_optimizer, make_learning_rate_decay_fn
    from onmt.utils.parse import ArgumentParser
