"""How `prepare --minutes` plans a training: a rule on speeds that were measured elsewhere.

`candidates` are the networks to measure, `choose_network` and `choose_validations` the rule, which
docs/guide-training.md describes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onmt_entmax.errors import counted

# Found by trainings, see docs/guide-training.md.
SIZES = (200, 300)  # of the states; 400 and 500 were worse in the same time
LEARNING_RATE = 0.003
FEW_ROWS = 2_000  # with fewer, batches of 32 rather than 64
PASSES = 5  # over the data that a network should make, or a smaller one is better
FASTER = 1.1  # how much faster rounded products must be
# Passes, and the dropout below them: the more often a model sees a row, the more it needs.
DROPOUT = ((10.0, 0.1), (20.0, 0.3), (float("inf"), 0.5))
# Hallucinated pairs are worth half of so many passes, of languages that have at least so many rows
# of a word, and so large a share of it in its stem.
HALLUCINATED_PASSES = 20.0
HALLUCINATED_ROWS = 4.0
HALLUCINATED_STEM = 0.75
VALIDATION_SHARE = 0.05  # of the time, at most, for all validations
_PLANNED_SHARE = 0.04  # what is planned of it, since measured speeds vary
_DECODING = 0.75  # of a validation's time, since decoding is slower than computing the loss
_FEW_DECODED = 500  # pairs; rather than decode fewer, validate less often


@dataclass(frozen=True)
class Network:
    """What a plan chooses by measurement.

    Attributes:
        layers: of encoder and decoder.
        size: of states and embeddings.
        batch: pairs.
        products: `matmul_dtype`, the type of the factors of products.
    """

    layers: int
    size: int
    batch: int
    products: str = "float32"

    @property
    def options(self) -> list[str]:
        """The options of `train` that make it."""
        sizes = {"rnn_size": self.size, "word_vec_size": self.size, "batch_size": self.batch}
        named = {"layers": self.layers, **sizes, "matmul_dtype": self.products}
        return [word for name, value in named.items() for word in (f"-{name}", str(value))]

    def __str__(self) -> str:
        layers = counted(self.layers, "layer")
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


@dataclass(frozen=True)
class Plan:
    """What to train in a given time.

    Attributes:
        minutes: the time.
        choice: of a network.
        validations: how often to validate.
        gpu: whether a GPU was measured.
        measured: what was measured, for people.
        hallucinated: pairs to train on besides those of the user.
    """

    minutes: float
    choice: Choice
    validations: Validations
    gpu: bool
    measured: Sequence[str]
    hallucinated: int = 0

    @property
    def updates(self) -> int:
        """Updates that fit into the time at the measured speed, at least 1."""
        seconds = 60 * self.minutes * (1 - _PLANNED_SHARE)
        return max(round(seconds * self.choice.speed / self.choice.network.batch), 1)

    @property
    def dropout_line(self) -> str:
        """The dropout, as a line of YAML."""
        why = f"for {self.choice.passes:.3g} passes over the data; more passes need more"
        return explained(f"dropout: [{self.choice.dropout}]", why)

    @property
    def lines(self) -> list[str]:
        """What was measured and chosen."""
        device = "GPU" if self.gpu else "CPU"
        return [
            f"Planned for {self.minutes:g} minutes of this machine's {device}, where it trained",
            *(f"  {line}" for line in self.measured),
            f"Chosen: {self.choice.network}: {self.choice.reason}.",
            *self._said_of_pairs,
        ]

    @property
    def _said_of_pairs(self) -> list[str]:
        if not self.hallucinated:
            return []
        return [
            f"Of these rows, {self.hallucinated:,} are hallucinated, since there are at least "
            f"{HALLUCINATED_PASSES:g} passes without; --hallucinate 0 leaves them out."
        ]

    @property
    def settings(self) -> list[str]:
        """The options of time and validation, as lines of YAML."""
        products, sizes = self.choice.network.products, self.validations
        every = max(round(self.updates / (sizes.count - 0.5)), 1)
        pairs = ["a sample" if n else "all" for n in (sizes.decode_size, sizes.loss_size)]
        lines = [
            (f"max_seconds: {60 * self.minutes:.10g}", f"{self.minutes:g} minutes in all"),
            (
                f"valid_steps: {every}",
                f"{sizes.count} times with the end, in at most {VALIDATION_SHARE:.0%} of the time",
            ),
            (f"valid_decode_size: {sizes.decode_size}", pairs[0]),
            (f"valid_loss_size: {sizes.loss_size}", pairs[1]),
            (f"save_checkpoint_steps: {every}", "so often, and the best"),
        ]
        if products != "float32":
            lines.insert(0, (f"matmul_dtype: {products}", "faster than float32 here"))
        if self.gpu:
            lines.append(("gpu_ranks: [0]", "the GPU that was measured"))
        return [explained(*line) for line in lines]


def explained(setting: str, why: str) -> str:
    """Return a line of YAML with a comment."""
    return f"{setting:33} # {why}"


def candidates(
    rows: int,
    gpu: bool,
    layers: int | None = None,
    size: int | None = None,
    batch: int | None = None,
) -> list[Network]:
    """Return the networks to measure, smaller ones first.

    Args:
        rows: of the training data.
        gpu: for a GPU, whose rounded products are another type.
        layers: their number, if the user chose it; so for the others.
        size: of the states.
        batch: pairs of a batch.
    """
    return [
        Network(layers or 1, each, batch or (32 if rows < FEW_ROWS else 64), products)
        for each in ([size] if size else SIZES)
        for products in ("float32", "tf32" if gpu else "bfloat16")
    ]


def choose_network(rows: int, seconds: float, speeds: Mapping[Network, float]) -> Choice:
    """Return the largest network that makes enough passes over the data, else the smallest.

    Args:
        rows: of the training data.
        seconds: of the training with its validations.
        speeds: pairs a second of each network, smaller networks first.
    """
    fastest: dict[tuple[int, int, int], Network] = {}
    for network, speed in speeds.items():
        key = network.layers, network.size, network.batch
        other = fastest.get(key)
        if other is None or speed >= FASTER * speeds[other]:
            fastest[key] = network
    networks = list(fastest.values())
    training = seconds * (1 - _PLANNED_SHARE)
    passes = {network: training * speeds[network] / rows for network in networks}
    enough = [network for network in networks if passes[network] >= PASSES]
    chosen = enough[-1] if enough else networks[0]
    planned = f"about {passes[chosen]:.3g} passes over {counted(rows, 'row')}"
    if len(networks) == 1:
        reason = f"the only one measured; {planned}"
    elif enough:
        reason = f"the largest that makes {PASSES} passes; {planned}"
    else:
        reason = f"the smallest, since none makes {PASSES} passes; {planned}"
    dropout = next(value for below, value in DROPOUT if passes[chosen] <= below)
    return Choice(chosen, speeds[chosen], passes[chosen], dropout, reason)


def choose_validations(
    pairs: int, seconds: float, loss_speed: float, decode_speed: float
) -> Validations:
    """Return how often to validate, and on how many pairs, in a small share of the time.

    With a cosine, the last weights are nearly always the best, so five times suffice; fewer, if
    each could decode only few pairs.

    Args:
        pairs: of the development set.
        seconds: of the training.
        loss_speed: pairs a second whose loss is computed.
        decode_speed: pairs a second that are decoded.
    """
    counts = (5, 3, 2)
    for count in counts:
        each = _PLANNED_SHARE * seconds / count
        decode = max(round(_DECODING * each * decode_speed), 1)
        loss = max(round((1 - _DECODING) * each * loss_speed), 1)
        if decode >= min(pairs, _FEW_DECODED) or count == counts[-1]:
            break
    return Validations(count, loss if loss < pairs else 0, decode if decode < pairs else 0)
