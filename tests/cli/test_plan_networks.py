"""The network that `prepare --minutes` chooses by the speeds of several, and its dropout."""

import pytest

from onmt_entmax.cli.plan_lines import reason
from onmt_entmax.cli.planned_networks import Network
from onmt_entmax.cli.plans import Choice, choose_network

# The numbers are those of the documentation: docs/guide-plans.md.
SIZES = (200, 300)
TRAINING_SHARE = 0.96  # of the time; the rest is for validations
SPEED_UP = 1.1  # how many times as fast rounded products must train to be chosen

ROWS = 15_000  # of training data
SECONDS = 600


def networks_of(*speeds: float, products: str = "float32") -> dict[Network, float]:
    """Return networks of one layer with these speeds, in pairs a second, the smallest first."""
    return {
        Network(1, 1, size=size, batch=64, products=products): speed
        for size, speed in zip(SIZES, speeds, strict=False)
    }


def speed_for(passes: float, pairs: int = ROWS) -> float:
    """Return the speed, in pairs a second, that makes so many passes in the time."""
    return passes * pairs / (TRAINING_SHARE * SECONDS)


# --- the size ---


def choose_in(minutes: float) -> Choice:
    """Choose between a network of 200 states, and one of 300 at two thirds of its speed."""
    return choose_network(ROWS, 60 * minutes, networks_of(900, 600))


@pytest.mark.parametrize(
    ("minutes", "size"),
    [
        pytest.param(15, 300, id="more than enough for the larger"),
        pytest.param(3, 300, id="enough for the larger"),
        pytest.param(2, 200, id="enough for the smaller"),
    ],
)
def test_the_largest_network_that_makes_five_passes_is_chosen(minutes: int, size: int) -> None:
    choice = choose_in(minutes)
    assert choice.passes >= 5
    assert choice.network.size == size


@pytest.mark.parametrize("minutes", [15, 3, 2])
def test_if_a_network_makes_five_passes_the_reason_says_so(minutes: int) -> None:
    text = reason(choose_in(minutes))
    assert text.startswith("the largest that makes the passes it needs, 5")


def test_if_no_network_makes_five_passes_the_smallest_is_chosen() -> None:
    choice = choose_in(1)
    assert choice.passes < 5
    assert choice.network.size == min(SIZES)


def test_if_no_network_makes_five_passes_the_reason_says_so() -> None:
    assert reason(choose_in(1)).startswith("the smallest, since none makes 5 passes")


def test_a_single_network_is_chosen_whatever_its_passes() -> None:
    """In a minute it sees 0.96 * 60 of 15,000 rows."""
    choice = choose_network(ROWS, 60, networks_of(1))
    assert reason(choice).startswith(
        "the only size measured; about 0.00384 passes over 15,000 rows"
    )


@pytest.mark.parametrize("minutes", [1, 2, 3, 15])
def test_passes_are_made_in_the_time_without_that_of_validations(minutes: int) -> None:
    choice = choose_in(minutes)
    pairs = TRAINING_SHARE * 60 * minutes * choice.speed
    assert choice.passes == pytest.approx(pairs / ROWS)


# --- a second layer in the encoder ---


@pytest.mark.parametrize(("passes", "layers"), [(34, 1), (36, 2)])
def test_a_second_layer_needs_35_passes(passes: float, layers: int) -> None:
    networks = networks_of(900, 600) | {Network(2, 1, size=300, batch=32): speed_for(passes)}
    assert choose_network(ROWS, SECONDS, networks).network.encoder_layers == layers


@pytest.mark.parametrize(("layers", "learning_rate"), [(1, 0.003), (2, 0.002)])
def test_a_second_layer_has_a_lower_learning_rate(layers: int, learning_rate: float) -> None:
    assert Network(layers, 1, size=300, batch=32).learning_rate == learning_rate


@pytest.mark.parametrize(
    ("network", "text"),
    [
        (Network(1, 1, 300, 64), "1 layer of 300, batches of 64, float32"),
        (
            Network(2, 1, 300, 32),
            "2 layers of encoder and 1 of decoder, of 300, batches of 32, float32",
        ),
    ],
    ids=["equal layers", "more in the encoder"],
)
def test_a_network_as_text_has_its_layers_size_batch_and_products(
    network: Network, text: str
) -> None:
    assert str(network) == text


# --- products ---


@pytest.mark.parametrize(
    ("ratio", "products"),
    [
        pytest.param(0.99 * SPEED_UP, "float32", id="a little less than needed"),
        pytest.param(1.01 * SPEED_UP, "bfloat16", id="a little more"),
    ],
)
def test_rounded_products_must_be_faster(ratio: float, products: str) -> None:
    speed = 400
    rounded = networks_of(speed * ratio, products="bfloat16")
    choice = choose_network(ROWS, 3600, networks_of(speed) | rounded)
    assert choice.network.products == products


# --- dropout ---


@pytest.mark.parametrize(
    ("passes", "dropout"),
    [(1, 0.1), (9.9, 0.1), (10.1, 0.3), (19, 0.3), (21, 0.5), (900, 0.5)],
)
def test_the_dropout_grows_with_the_passes(passes: float, dropout: float) -> None:
    choice = choose_network(ROWS, SECONDS, networks_of(speed_for(passes)))
    assert choice.dropout == dropout


# --- hallucinated pairs ---


def choose_with_pairs(passes: float) -> Choice:
    """Choose a network, the only one, that makes so many passes over rows and pairs."""
    pairs = 4_000
    networks = networks_of(speed_for(passes, ROWS + pairs))
    return choose_network(ROWS, SECONDS, networks, pairs)


@pytest.mark.parametrize("passes", [5, 19, 21])
def test_passes_are_over_rows_and_hallucinated_pairs(passes: float) -> None:
    assert choose_with_pairs(passes).passes == pytest.approx(passes)


@pytest.mark.parametrize(("passes", "dropout"), [(5, 0.3), (19, 0.3), (21, 0.5)])
def test_with_hallucinated_pairs_the_dropout_is_at_least_0_3(passes: float, dropout: float) -> None:
    assert choose_with_pairs(passes).dropout == dropout
