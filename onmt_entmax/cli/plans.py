"""How `prepare --minutes` plans a training: a rule on speeds that were measured elsewhere.

`candidates` are the networks to measure, `choose_network` and `choose_validations` the rule. Its
numbers were found by trainings, which docs/results-plans.md lists; docs/guide-training.md has the
rule. `plan_lines.py` writes what is chosen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from onmt_entmax.errors import counted

# --- networks ---

SIZES = (200, 300)  # of the states; 400 and 500 were worse in the same time
USUAL_BATCH = 64  # pairs
SMALL_BATCH = 32  # with fewer than `FEW_ROWS` rows, and for deep networks
FEW_ROWS = 2_000
FASTER = 1.1  # how many times as fast rounded products must train

LEARNING_RATE = 0.003
PASSES = 5  # over the data that a network should make, or a smaller one is better
# A deep network has two layers in the encoder and one in the decoder. It needs as many rows: with
# 500 it was much worse.
DEEP_LEARNING_RATE = 0.002
DEEP_PASSES = 35
DEEP_ROWS = 10_000

# Passes, and the dropout up to them: the more often a model sees a row, the more it needs.
DROPOUT = ((10.0, 0.1), (20.0, 0.3), (float("inf"), 0.5))
# From so many passes on, hallucinated pairs are worth half of them.
HALLUCINATED_PASSES = 10.0
HALLUCINATED_DROPOUT = 0.3  # or more, with such pairs

# --- validations ---

VALIDATION_SHARE = 0.05  # of the time, at most, for all validations
PLANNED_SHARE = 0.04  # what is planned of it, since measured speeds vary
_DECODING = 0.75  # of a validation's time, since decoding is slower than computing the loss
_FEW_DECODED = 500  # pairs; rather than decode fewer, validate less often
_VALIDATIONS = (5, 3, 2)  # numbers of them to choose from


@dataclass(frozen=True)
class Network:
    """What a plan chooses by measurement.

    Attributes:
        encoder_layers: of the encoder.
        decoder_layers: of the decoder.
        size: of states and embeddings.
        batch: pairs.
        products: `matmul_dtype`, the type of the factors of products.
    """

    encoder_layers: int
    decoder_layers: int
    size: int
    batch: int
    products: str = "float32"

    @property
    def sizes(self) -> dict[str, int]:
        """The options of `train` that make it, but for those of a batch."""
        layers = {"enc_layers": self.encoder_layers, "dec_layers": self.decoder_layers}
        if self.encoder_layers == self.decoder_layers:
            layers = {"layers": self.encoder_layers}
        return layers | {"rnn_size": self.size, "word_vec_size": self.size}

    @property
    def options(self) -> list[str]:
        """All options of `train` that make it."""
        named = {**self.sizes, "batch_size": self.batch, "matmul_dtype": self.products}
        return [word for name, value in named.items() for word in (f"-{name}", str(value))]

    @property
    def is_deep(self) -> bool:
        """Whether the encoder has more layers than the decoder."""
        return self.encoder_layers > self.decoder_layers

    @property
    def learning_rate(self) -> float:
        """The largest one of its training by a plan."""
        return DEEP_LEARNING_RATE if self.is_deep else LEARNING_RATE

    @property
    def passes(self) -> int:
        """Passes over the data that it should make, or a smaller network is better."""
        return DEEP_PASSES if self.is_deep else PASSES

    def __str__(self) -> str:
        layers = counted(self.encoder_layers, "layer")
        if self.is_deep:
            layers += f" of encoder and {self.decoder_layers} of decoder,"
        return f"{layers} of {self.size}, batches of {self.batch}, {self.products}"


@dataclass(frozen=True)
class Choice:
    """A network, and why.

    Attributes:
        network: that is chosen.
        speed: pairs that it trains on in a second.
        passes: that it makes over the training data in the time.
        dropout: for so many passes.
        reason: for people.
    """

    network: Network
    speed: float
    passes: float
    dropout: float
    reason: str


@dataclass(frozen=True)
class Validations:
    """How often to validate, and on what.

    Attributes:
        count: validations, that at the end included.
        loss_size: pairs whose loss is computed; 0: all.
        decode_size: pairs that are decoded; 0: all.
    """

    count: int
    loss_size: int
    decode_size: int


def candidates(
    rows: int,
    gpu: bool,
    layers: int | None = None,
    size: int | None = None,
    batch: int | None = None,
) -> list[Network]:
    """Return the networks to measure, smaller ones first, each first with products of float32.

    Args:
        rows: of the training data.
        gpu: whether to train on a GPU, whose rounded products are another type.
        layers: their number, if the user chose it; else 1, and with many rows then 2 in the
            encoder alone.
        size: of the states, if the user chose it; else each of `SIZES`.
        batch: pairs of a batch, if the user chose it; else by the rows.
    """
    sizes = (size,) if size else SIZES
    usual_batch = SMALL_BATCH if rows < FEW_ROWS else USUAL_BATCH
    networks = [Network(layers or 1, layers or 1, states, batch or usual_batch) for states in sizes]
    if layers is None and rows >= DEEP_ROWS:
        networks.append(Network(2, 1, sizes[-1], batch or SMALL_BATCH))
    rounded = "tf32" if gpu else "bfloat16"
    return [
        replace(network, products=products)
        for network in networks
        for products in ("float32", rounded)
    ]


def choose_network(
    rows: int, seconds: float, speeds: Mapping[Network, float], hallucinated: int = 0
) -> Choice:
    """Return the largest network that makes enough passes over the data, else the smallest.

    Args:
        rows: of the training data.
        seconds: of the training with its validations.
        speeds: pairs a second of each network, in the order of `candidates`.
        hallucinated: pairs to train on besides the rows.
    """
    networks = _with_fastest_products(speeds)
    training = seconds * (1 - PLANNED_SHARE)
    pairs = rows + hallucinated
    passes = {network: training * speeds[network] / pairs for network in networks}
    enough = [network for network in networks if passes[network] >= network.passes]
    chosen = enough[-1] if enough else networks[0]
    if len(networks) == 1:
        reason = "the only one measured"
    elif enough:
        reason = f"the largest that makes the passes it needs, {chosen.passes}"
    else:
        reason = f"the smallest, since none makes {PASSES} passes"
    dropout = next(value for up_to, value in DROPOUT if passes[chosen] <= up_to)
    if hallucinated:
        dropout = max(dropout, HALLUCINATED_DROPOUT)
    return Choice(
        chosen,
        speed=speeds[chosen],
        passes=passes[chosen],
        dropout=dropout,
        reason=f"{reason}; about {passes[chosen]:.3g} passes over {counted(pairs, 'row')}",
    )


def _with_fastest_products(speeds: Mapping[Network, float]) -> list[Network]:
    """Return the networks, in order, each with the type of products that trains fastest.

    Args:
        speeds: pairs a second of each network, in the order of `candidates`.
    """
    fastest: dict[Network, Network] = {}
    for network, speed in speeds.items():
        in_float32 = replace(network, products="float32")
        other = fastest.get(in_float32)
        if other is None or speed >= FASTER * speeds[other]:
            fastest[in_float32] = network
    return list(fastest.values())


def choose_validations(
    pairs: int, seconds: float, loss_speed: float, decode_speed: float
) -> Validations:
    """Return how often to validate, and on how many pairs, in a small share of the time.

    With a cosine, the last weights are nearly always the best, so the first number of
    `_VALIDATIONS` suffices; fewer, if each of them could decode only few pairs.

    Args:
        pairs: of the development set.
        seconds: of the training.
        loss_speed: pairs a second whose loss is computed.
        decode_speed: pairs a second that are decoded.
    """
    possible = []
    for count in _VALIDATIONS:
        time_of_one = PLANNED_SHARE * seconds / count
        decoded = max(round(_DECODING * time_of_one * decode_speed), 1)
        with_loss = max(round((1 - _DECODING) * time_of_one * loss_speed), 1)
        possible.append(Validations(count, loss_size=with_loss, decode_size=decoded))
    needed = min(pairs, _FEW_DECODED)
    # Both begin with the most validations.
    decoding_enough = [validations for validations in possible if validations.decode_size >= needed]
    chosen = decoding_enough[0] if decoding_enough else possible[-1]
    return Validations(
        chosen.count,
        loss_size=chosen.loss_size if chosen.loss_size < pairs else 0,
        decode_size=chosen.decode_size if chosen.decode_size < pairs else 0,
    )
