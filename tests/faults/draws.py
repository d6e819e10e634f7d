"""Random models and requests, small enough that all sequences can be enumerated.

The same seed gives the same draws: a check that fails can be repeated. The shares, such as 0.7 of
usual alphas, are choices: each case is drawn often enough, and the cheaper or commoner one more.
"""

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from onmt_entmax.data.batch import Batch
from onmt_entmax.nn.transformer import ATTENTION_KINDS, LEARNED, SHARED
from onmt_entmax.search import Constraints, ModelStepper, Penalties, SearchConfig
from onmt_entmax.search.config import Stop
from tests.search.networks import DECODERS, network, stepper
from tests.search.table_steppers import TableStepper
from tests.search.tables import Table

STOPS: tuple[Stop, ...] = ("exhaustive", "optimal", "first")
# Expansions of an exact search: it ends early, or has enough for every model that is drawn.
FEW_EXPANSIONS, ENOUGH_EXPANSIONS = 5, 10_000
# Parts of the probability that an exact search lists.
MASSES = (1.0, 0.9, 0.5)
# How far log-probabilities may be from those of a table, by the type in which they are summed.
TABLE_TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-5}

Sentence = Batch | Sequence[Table] | Sequence[None]
"""One sentence, as the stepper takes it: of a network, of a table, or of an ensemble of tables."""
ENSEMBLE_SENTENCE: Sequence[None] = (None,)
"""A sentence of an ensemble of tables; the members have their tables, so it has no content."""


def member_seed(seed: int, member: int) -> int:
    """Return the seed of a member of an ensemble.

    Checks have consecutive seeds. The members of one check would be those of the next, if their
    seeds were consecutive, too.

    Args:
        seed: of the check.
        member: number of the member; the first, 0, has the seed of the check.
    """
    return seed + 11 * member


def draw_alpha(rng: random.Random) -> float:
    """Return an alpha from 1 to 3: a usual one, or one such as a model may learn."""
    usual = rng.choice([1.0, 1.1, 1.2, 1.5, 2.0, 2.5, 3.0])
    return usual if rng.random() < 0.7 else rng.uniform(1.0, 3.0)


def draw_config(
    rng: random.Random,
    max_length: int,
    n_bests: Sequence[int] = (0, 1, 1, 3),
    **options: Any,
) -> SearchConfig:
    """Return a random beam, stopping rule and number of hypotheses, with other options as given.

    Args:
        rng: random generator.
        max_length: limit of the output's length, in tokens.
        n_bests: numbers of hypotheses, of which one is drawn; 0: all that are found.
        options: other options of `SearchConfig`.
    """
    n_best = rng.choice(n_bests)
    return SearchConfig(
        beam_size=rng.randint(1, 10),
        n_best=n_best,
        max_length=max_length,
        stop=rng.choice(STOPS),
        **options,
    )


def constraints_on(ignored: int, banned: int) -> tuple[Constraints, ...]:
    """Return constraints to choose from: each kind alone, and all together.

    Args:
        ignored: a token; n-grams that contain it may be repeated.
        banned: a token that no output may have.
    """
    ignore, ban = frozenset({ignored}), frozenset({banned})
    return (
        Constraints(min_length=2),
        Constraints(block_ngram_repeat=2),
        Constraints(block_ngram_repeat=1, ignore_when_blocking=ignore),
        Constraints(banned=ban),
        Constraints(min_length=1, block_ngram_repeat=2, ignore_when_blocking=ignore, banned=ban),
    )


def draw_reward(rng: random.Random) -> Penalties:
    """Return a random length reward."""
    return Penalties(length_reward=rng.uniform(0.1, 2), length_ratio=rng.uniform(0.5, 2))


class DrawnTable(NamedTuple):
    """A table of probabilities."""

    table: Table
    stepper: TableStepper
    tolerance: float
    """How far log-probabilities may be from the table's, in float32 or float64."""


def draw_table(seed: int, rng: random.Random, least_tokens: int = 3) -> DrawnTable:
    """Return a random table of `least_tokens` to 6 tokens."""
    alpha = draw_alpha(rng)
    tokens = rng.randint(least_tokens, 6)
    table = Table(seed, alpha, tokens, spread=rng.choice([1.0, 2.0, 4.0]))
    is_double = rng.random() < 0.5
    dtype = torch.float64 if is_double else torch.float32
    is_dense = rng.random() < 0.4  # then a search may begin with a single prefix
    stepper = TableStepper(tokens, dtype=dtype, attention=True, dense=is_dense)
    return DrawnTable(table, stepper, tolerance=TABLE_TOLERANCES[dtype])


class DrawnNetwork(NamedTuple):
    """A network with random weights."""

    stepper: ModelStepper
    tolerance: float
    """How far the log-probabilities of two batches may be apart."""


def draw_network(seed: int, rng: random.Random) -> DrawnNetwork:
    """Return a random network of any kind, with random attention."""
    kind = rng.choice(list(DECODERS))
    is_double = rng.random() < 0.8
    attention = _draw_attention(kind, rng)
    model = network(kind, draw_alpha(rng), seed, is_double, **attention)
    return DrawnNetwork(stepper(model), _network_tolerance(kind, is_double))


def _draw_attention(kind: str, rng: random.Random) -> dict[str, Any]:
    """Return random options of the attention that a kind of network has."""
    options: dict[str, Any] = {"global_attention_alpha": draw_alpha(rng)}
    if "decoder_type" not in DECODERS[kind]:  # recurrent
        return options | {"global_attention": rng.choice(["dot", "general", "mlp"])}
    with_alpha = {*ATTENTION_KINDS}
    if kind == "average":  # the self-attention of its decoder has no alpha
        with_alpha.remove("decoder")
    for which in sorted(with_alpha):
        alpha = rng.choice([1.0, draw_alpha(rng), LEARNED, SHARED])
        options[f"{which}_attention_alpha"] = alpha
    return options


def _network_tolerance(kind: str, is_double: bool) -> float:
    """Return by how much log-probabilities of two batches may differ.

    In float32 a score next to the threshold has few digits, and so has the logarithm of a rare
    token (docs/certificates.md, "Floating point"). The mean encoder is in float32 always.
    """
    if not is_double:
        return 1e-2
    return 1e-3 if kind == "mean" else 1e-7
