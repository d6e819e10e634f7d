"""The networks that `prepare --minutes` measures, to choose one of them for a plan.

The numbers come from the trainings in docs/results-plans.md.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from onmt_entmax.errors import counted

SIZES = (200, 300)
"""Sizes of the states; 400 and 500 were worse in the same time"""
_USUAL_BATCH = 64  # pairs
_SMALL_BATCH = 32  # pairs; for deep networks, and for fewer rows than `_FEW_ROWS`
_FEW_ROWS = 2_000
_DEEP_ROWS = 10_000  # a deep network is measured from this many rows on; with 500 it was much worse


class _Training(NamedTuple):
    """How a plan trains networks of one depth.

    Attributes:
        learning_rate: the largest learning rate of the schedule.
        passes: passes over the data that such a network needs; with fewer, a smaller one is better.
    """

    learning_rate: float
    passes: int


_SHALLOW = _Training(learning_rate=0.003, passes=5)
_DEEP = _Training(learning_rate=0.002, passes=35)  # two layers in the encoder, one in the decoder


@dataclass(frozen=True)
class Network:
    """A network, and how its updates are computed.

    Attributes:
        encoder_layers: number of layers of the encoder.
        decoder_layers: number of layers of the decoder.
        size: size of states and embeddings.
        batch: pairs in an update.
        products: `matmul_dtype`, the type of the factors of products.
    """

    encoder_layers: int
    decoder_layers: int
    size: int
    batch: int
    products: str = "float32"

    @property
    def sizes(self) -> dict[str, int]:
        """The options of `train` for layers and sizes."""
        layers = {"enc_layers": self.encoder_layers, "dec_layers": self.decoder_layers}
        if self.encoder_layers == self.decoder_layers:
            layers = {"layers": self.encoder_layers}
        return layers | {"rnn_size": self.size, "word_vec_size": self.size}

    @property
    def options(self) -> list[str]:
        """All options of `train` for this network, as words of a command line."""
        values = {**self.sizes, "batch_size": self.batch, "matmul_dtype": self.products}
        return [word for name, value in values.items() for word in (f"-{name}", str(value))]

    @property
    def is_deep(self) -> bool:
        """Whether the encoder has more layers than the decoder."""
        return self.encoder_layers > self.decoder_layers

    @property
    def learning_rate(self) -> float:
        """The largest learning rate of the schedule."""
        return self._training.learning_rate

    @property
    def passes(self) -> int:
        """Passes over the data that this network needs; with fewer, a smaller one is better."""
        return self._training.passes

    @property
    def _training(self) -> _Training:
        """How a plan trains this network."""
        return _DEEP if self.is_deep else _SHALLOW

    def __str__(self) -> str:
        layers = counted(self.encoder_layers, "layer")
        if self.is_deep:
            layers += f" of encoder and {self.decoder_layers} of decoder,"
        return f"{layers} of {self.size}, batches of {self.batch}, {self.products}"


def candidates(
    rows: int,
    gpu: bool,
    layers: int | None = None,
    size: int | None = None,
    batch: int | None = None,
) -> list[Network]:
    """Return the networks to measure, smaller ones first, each first with products of float32.

    Args:
        rows: number of training rows.
        gpu: whether to train on a GPU, which rounds products to TF32 instead of bfloat16.
        layers: number of layers that the user chose. None: 1, and with many rows one more network
            that has 2 layers in the encoder.
        size: size of the states that the user chose; None: each of `SIZES`.
        batch: pairs in a batch that the user chose; None: the number of rows decides.
    """
    sizes = (size,) if size else SIZES
    shallow_batch = batch or (_SMALL_BATCH if rows < _FEW_ROWS else _USUAL_BATCH)
    networks = [Network(layers or 1, layers or 1, states, shallow_batch) for states in sizes]
    if layers is None and rows >= _DEEP_ROWS:
        networks.append(Network(2, 1, sizes[-1], batch or _SMALL_BATCH))
    rounded = "tf32" if gpu else "bfloat16"
    return [
        replace(network, products=products)
        for network in networks
        for products in ("float32", rounded)
    ]
