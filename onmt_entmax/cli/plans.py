"""The rule by which `prepare --minutes` plans a training, from the speeds of networks.

`choose_network` and `choose_validations` are the rule. Its numbers come from the trainings in
docs/results-plans.md, and docs/guide-plans.md explains it to users. `planned_networks` has the
networks to measure, and `plan_lines` writes a plan as text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from onmt_entmax.cli.planned_networks import Network

# --- the network ---

_FASTER = 1.1  # rounded products are chosen if they train at least this many times as fast

# Largest number of passes, and the dropout of such a training: the more often a model sees a row,
# the more dropout it needs.
_DROPOUT = ((10.0, 0.1), (20.0, 0.3), (float("inf"), 0.5))
HALLUCINATED_PASSES = 10.0
"""Hallucinated pairs help from this many passes on, although they take half of the passes"""
_HALLUCINATED_DROPOUT = 0.3  # least dropout with such pairs

# --- validations ---

VALIDATION_SHARE = 0.05
"""Largest share of the time that all validations take"""
_PLANNED_SHARE = 0.04  # planned share of the time; smaller than the largest, since speeds vary
_DECODING = 0.75  # share of a validation's time for decoding, which is slower than the loss
_FEW_DECODED = 500  # pairs; with time for fewer in each validation, there are fewer validations
_VALIDATIONS = (5, 3, 2)  # numbers of validations to choose from


@dataclass(frozen=True)
class Choice:
    """The network that a plan trains.

    Attributes:
        network: the chosen network.
        speed: training pairs a second.
        pairs: number of training pairs, with the hallucinated ones.
        passes: passes over these pairs in the time.
        dropout: dropout for this number of passes.
        compared: number of networks that were compared, with this one.
        makes_passes: whether the network makes as many passes as it needs.
    """

    network: Network
    speed: float
    pairs: int
    passes: float
    dropout: float
    compared: int
    makes_passes: bool


@dataclass(frozen=True)
class Validations:
    """How often to validate, and on what.

    Attributes:
        count: number of validations, with the one at the end of the training.
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
        minutes: time of one training, with its validations.
        choice: the network to train.
        validations: how often to validate.
        gpu: whether a GPU was measured.
        measured: lines of text about the measured speeds.
        hallucinated: number of hallucinated pairs that the plan adds to the training data.
        models: number of trainings, which differ in their seeds.
    """

    minutes: float
    choice: Choice
    validations: Validations
    gpu: bool
    measured: Sequence[str]
    hallucinated: int = 0
    models: int = 1

    @property
    def updates(self) -> int:
        """Number of updates of one training at the measured speed, at least 1."""
        seconds = 60 * self.minutes * (1 - _PLANNED_SHARE)
        return max(round(seconds * self.choice.speed / self.choice.network.batch), 1)


def choose_network(
    rows: int, seconds: float, speeds: Mapping[Network, float], hallucinated: int = 0
) -> Choice:
    """Choose the largest network that makes enough passes over the data, or else the smallest.

    Args:
        rows: number of training rows.
        seconds: time of the training, with its validations.
        speeds: training pairs a second of each network; smaller networks come first, as in
            `candidates`.
        hallucinated: number of hallucinated pairs in the training data.
    """
    networks = _with_fastest_products(speeds)
    training = seconds * (1 - _PLANNED_SHARE)
    pairs = rows + hallucinated
    passes = {network: training * speeds[network] / pairs for network in networks}
    enough = [network for network in networks if passes[network] >= network.passes]
    chosen = enough[-1] if enough else networks[0]
    dropout = next(value for up_to, value in _DROPOUT if passes[chosen] <= up_to)
    if hallucinated:
        dropout = max(dropout, _HALLUCINATED_DROPOUT)
    return Choice(
        chosen,
        speed=speeds[chosen],
        pairs=pairs,
        passes=passes[chosen],
        dropout=dropout,
        compared=len(networks),
        makes_passes=bool(enough),
    )


def _with_fastest_products(speeds: Mapping[Network, float]) -> list[Network]:
    """Return the networks, in order, each with the type of products that trains fastest.

    Args:
        speeds: training pairs a second. Each network comes with products of float32 first.
    """
    fastest: dict[Network, Network] = {}
    for network, speed in speeds.items():
        in_float32 = replace(network, products="float32")
        other = fastest.get(in_float32)
        if other is None or speed >= _FASTER * speeds[other]:
            fastest[in_float32] = network
    return list(fastest.values())


def choose_validations(
    pairs: int, seconds: float, loss_speed: float, decode_speed: float
) -> Validations:
    """Choose how often to validate, and on how many pairs, in a small share of the time.

    With a cosine schedule, the last weights are nearly always the best, so a few validations
    suffice. There are fewer if there is no time to decode `_FEW_DECODED` pairs in each of them.

    Args:
        pairs: number of pairs in the development set.
        seconds: time of the training.
        loss_speed: pairs a second whose loss can be computed.
        decode_speed: pairs a second that can be decoded.
    """
    possible = []
    for count in _VALIDATIONS:
        time_of_one = _PLANNED_SHARE * seconds / count
        decoded = max(round(_DECODING * time_of_one * decode_speed), 1)
        with_loss = max(round((1 - _DECODING) * time_of_one * loss_speed), 1)
        possible.append(Validations(count, loss_size=with_loss, decode_size=decoded))
    needed = min(pairs, _FEW_DECODED)
    # Both lists begin with the most validations.
    decoding_enough = [validations for validations in possible if validations.decode_size >= needed]
    chosen = decoding_enough[0] if decoding_enough else possible[-1]
    return Validations(
        chosen.count,
        loss_size=chosen.loss_size if chosen.loss_size < pairs else 0,
        decode_size=chosen.decode_size if chosen.decode_size < pairs else 0,
    )
