"""The networks that `prepare --minutes` measures, to choose one of them for a plan.

The numbers come from the trainings in docs/results-plans.md.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from onmt_entmax.errors import counted

SIZES = (200, 300)  # states; 400 and 500 were worse in the same time
_USUAL_BATCH = 64  # pairs
_SMALL_BATCH = 32  # pairs, with few rows, and for deep networks
_FEW_ROWS = 2_000  # fewer rows have small batches
_DEEP_ROWS = 10_000  # fewer rows have no deep network: with 500 it was much worse


class _Training(NamedTuple):
    """How a plan trains networks of one depth."""

    learning_rate: float
    """The largest one of the schedule."""
    passes: int
    """Passes over the data without which a smaller network is better."""


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
        """The options of `train` for its layers and sizes."""
        layers = {"enc_layers": self.encoder_layers, "dec_layers": self.decoder_layers}
        if self.encoder_layers == self.decoder_layers:
            layers = {"layers": self.encoder_layers}
        return layers | {"rnn_size": self.size, "word_vec_size": self.size}

    @property
    def options(self) -> list[str]:
        """All options of `train` for it, as words of a command line."""
        named = {**self.sizes, "batch_size": self.batch, "matmul_dtype": self.products}
        return [word for name, value in named.items() for word in (f"-{name}", str(value))]

    @property
    def is_deep(self) -> bool:
        """Whether the encoder has more layers than the decoder."""
        return self.encoder_layers > self.decoder_layers

    @property
    def learning_rate(self) -> float:
        """The largest learning rate of its training by a plan."""
        return self._training.learning_rate

    @property
    def passes(self) -> int:
        """Passes over the data without which a smaller network is better."""
        return self._training.passes

    @property
    def _training(self) -> _Training:
        """How it is trained by a plan."""
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
        gpu: whether to train on a GPU, whose rounded products are another type.
        layers: number of layers, if the user chose it; else 1, and with many rows a last network
            has 2 in the encoder.
        size: size of the states, if the user chose it; else each of `SIZES`.
        batch: pairs in a batch, if the user chose it; else the rows decide.
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
