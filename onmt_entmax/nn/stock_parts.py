"""The encoder and the decoder of OpenNMT-py that models use as they are."""

from onmt_entmax.nn.parts import DecoderPart, EncoderPart
from onmt_entmax.opennmt import MeanEncoder, StdRNNDecoder


class MeanEncoderPart(EncoderPart, MeanEncoder):
    """OpenNMT-py's `MeanEncoder`, whose masks are float32."""

    is_float32_only = True


class StdRNNDecoderPart(DecoderPart, StdRNNDecoder):
    """OpenNMT-py's `StdRNNDecoder`, which has no input feeding."""
