"""Small encoders and decoders, and a batch for them."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from onmt_entmax.nn.attention import ATTENTIONS, EntmaxGlobalAttention
from onmt_entmax.opennmt import Embeddings, InputFeedRNNDecoder, RNNEncoder
from onmt_entmax.recurrence.decoder import FastInputFeedRNNDecoder
from onmt_entmax.recurrence.encoder import FastRNNEncoder

HIDDEN = 20
EMBEDDING = 12
VOCABULARY = 30
PAD = 1
SOURCE_LENGTHS = torch.tensor([6, 6, 5, 4, 3, 2, 1])  # falling, as encoders need them
TARGET_LENGTHS = torch.tensor([3, 5, 1, 5, 4, 2, 5])
SENTENCES = len(TARGET_LENGTHS)
SOURCE_STEPS = int(SOURCE_LENGTHS.max())
STEPS = int(TARGET_LENGTHS.max())


class Distance(EntmaxGlobalAttention):
    """Attention whose scores are negative squared distances: no products of keys and queries."""

    def __init__(self, dim: int, attn_type: str = "distance", alpha: float = 1.5) -> None:
        super().__init__(dim, "dot", alpha)
        self.attn_type = attn_type

    def score(self, h_t: Tensor, h_s: Tensor) -> Tensor:
        """Return scores ``(batch, target, source)``."""
        return -(h_t.unsqueeze(2) - h_s.unsqueeze(1)).square().sum(-1)


class Network(NamedTuple):
    """The options of an encoder with its decoder."""

    attention: str = "general"
    """A name of `ATTENTIONS`, or `distance`."""
    alpha: float = 1.5
    """Alpha of the attention."""
    layers: int = 2
    """Layers of the encoder, and as many of the decoder."""
    bidirectional: bool = True
    """Whether the encoder reads sources in both directions."""
    bridge: bool = False
    """Whether linear layers change the encoder's last states for the decoder."""
    dropout: float = 0.0
    """Probability of dropout."""


def fast_model(network: Network, dtype: torch.dtype = torch.float64) -> nn.ModuleList:
    """Return encoder and decoder of this package."""
    return _build(FastRNNEncoder, FastInputFeedRNNDecoder, network, dtype)


def stock_model(network: Network, dtype: torch.dtype = torch.float64) -> nn.ModuleList:
    """Return encoder and decoder of OpenNMT-py, with the weights of the `fast_model`."""
    return _build(RNNEncoder, InputFeedRNNDecoder, network, dtype)


def _build(
    encoder_kind: type[nn.Module],
    decoder_kind: type[nn.Module],
    network: Network,
    dtype: torch.dtype,
) -> nn.ModuleList:
    """Return an encoder and a decoder of these classes, whose constructors are OpenNMT-py's."""
    bidirectional, layers, dropout = network.bidirectional, network.layers, network.dropout
    source_words, target_words = (Embeddings(EMBEDDING, VOCABULARY, PAD) for _ in range(2))
    encoder = encoder_kind(
        "LSTM", bidirectional, layers, HIDDEN, dropout, source_words, network.bridge
    )
    decoder = decoder_kind(
        "LSTM", bidirectional, layers, HIDDEN, dropout=dropout, embeddings=target_words
    )
    # This replaces OpenNMT-py's own attention, which has neither alpha nor the type "distance".
    attention = {**ATTENTIONS, "distance": Distance}[network.attention]
    decoder.attn = attention(HIDDEN, network.attention, network.alpha)
    model = nn.ModuleList([encoder, decoder])
    torch.manual_seed(1)  # so that the weights depend on the network alone
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -0.4, 0.4)
    return model.to(dtype)


def batch(device: str = "cpu") -> tuple[Tensor, Tensor]:
    """Return random ids of sources and of targets.

    Beyond the lengths there are ids of real tokens, not of padding. So a model that reads them
    gives other results.

    Returns:
        ``(source steps, SENTENCES, 1)`` and ``(STEPS, SENTENCES, 1)``, int64.
    """
    generator = torch.Generator().manual_seed(2)

    def ids(steps: int) -> Tensor:
        shape = (steps, SENTENCES, 1)
        return torch.randint(PAD + 1, VOCABULARY, shape, generator=generator).to(device)

    source = ids(SOURCE_STEPS)
    return source, ids(STEPS)


def padded(outputs: Tensor, positions: Tensor) -> Tensor:
    """Spread the outputs ``(rows, hidden)`` of `teacher_forced` over steps and sentences.

    Args:
        outputs: outputs of the positions without padding.
        positions: position of each row in the flattened ``(steps * sentences)``.

    Returns:
        ``(steps, sentences, hidden)``, zeros at padding.
    """
    rows = outputs.new_zeros(STEPS * SENTENCES, outputs.size(1)).index_copy(0, positions, outputs)
    return rows.view(STEPS, SENTENCES, -1)


def with_gradients(model: nn.ModuleList, *results: Tensor) -> list[Tensor]:
    """Return results, and the gradients of their sum with random factors for all weights."""
    generator = torch.Generator().manual_seed(3)
    # Drawn on the CPU, so that they are the same on every device; `to(result)` moves them there.
    factors = (torch.randn(result.shape, generator=generator) for result in results)
    loss = sum(
        (result * factor.to(result)).sum() for result, factor in zip(results, factors, strict=True)
    )
    return [*results, *torch.autograd.grad(loss, list(model.parameters()))]


def assert_near(results: list[Tensor], expected: list[Tensor], tolerance: float) -> None:
    """Fail if the distance of a tensor to the expected one is more than a share of its norm.

    Args:
        results: tensors.
        expected: as many tensors, in the same shapes.
        tolerance: the share.
    """
    # Added, since gradients of weights without effect are 0 but for rounding.
    rounding = 1e-12
    for number, (result, exact) in enumerate(zip(results, expected, strict=True)):
        assert (result - exact).norm() <= tolerance * exact.norm() + rounding, number
