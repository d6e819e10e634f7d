"""The rule by which `prepare --minutes` plans, as a function of measured speeds."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from onmt_entmax.cli.plan_lines import dropout_option, plan_text, reason, schedule_options
from onmt_entmax.cli.planned_networks import SIZES, Network, candidates
from onmt_entmax.cli.plans import (
    FASTER,
    VALIDATION_SHARE,
    Choice,
    Plan,
    Validations,
    choose_network,
    choose_validations,
)

ROWS = 15_000  # of the training data
TRAINING_SHARE = 0.96  # of the time; what is planned for validations is the rest

# --- the networks to measure ---


@pytest.mark.parametrize("gpu", [False, True], ids=["CPU", "GPU"])
def test_candidates_have_each_size(gpu: bool) -> None:
    assert {network.size for network in candidates(ROWS, gpu=gpu)} == {*SIZES}


@pytest.mark.parametrize(
    ("gpu", "products"),
    [
        pytest.param(False, {"float32", "bfloat16"}, id="CPU"),
        pytest.param(True, {"float32", "tf32"}, id="GPU"),
    ],
)
def test_candidates_have_each_product_of_the_device(gpu: bool, products: set[str]) -> None:
    assert {network.products for network in candidates(ROWS, gpu=gpu)} == products


@pytest.mark.parametrize(("rows", "batch"), [(1_999, 32), (2_000, 64)], ids=["few", "many"])
def test_candidates_of_a_layer_have_batches_by_the_number_of_rows(rows: int, batch: int) -> None:
    networks = [network for network in candidates(rows, gpu=False) if network.encoder_layers == 1]
    assert {(network.decoder_layers, network.batch) for network in networks} == {(1, batch)}


def test_few_rows_have_no_candidate_with_a_second_layer() -> None:
    assert {network.encoder_layers for network in candidates(9_999, gpu=False)} == {1}


def test_the_last_candidates_have_a_second_layer_in_the_encoder() -> None:
    last = candidates(10_000, gpu=False)[-2:]
    assert last == [
        Network(2, 1, size=max(SIZES), batch=32, products=products)
        for products in ("float32", "bfloat16")
    ]


def test_candidates_begin_with_the_smallest() -> None:
    sizes = [network.size for network in candidates(ROWS, gpu=False)]
    assert sizes == sorted(sizes)


def test_what_the_user_chose_is_not_searched() -> None:
    assert candidates(100, gpu=False, layers=2, size=350, batch=16) == [
        Network(2, 2, size=350, batch=16, products=products) for products in ("float32", "bfloat16")
    ]


# --- the network ---


def networks_of(*speeds: float, products: str = "float32") -> dict[Network, float]:
    """Return networks of growing sizes, with these speeds in pairs a second."""
    return {
        Network(1, 1, size=size, batch=64, products=products): speed
        for size, speed in zip(SIZES, speeds, strict=False)
    }


def chosen_in(minutes: float) -> Choice:
    """Choose between a network of 200, and one of 300 at two thirds of its speed."""
    return choose_network(ROWS, 60 * minutes, networks_of(900, 600))


@pytest.mark.parametrize(
    ("minutes", "size"),
    [
        pytest.param(15, 300, id="more than enough for the larger"),
        pytest.param(3, 300, id="enough for the larger"),
        pytest.param(2, 200, id="enough for the smaller"),
    ],
)
def test_the_largest_network_that_makes_enough_passes_is_chosen(minutes: int, size: int) -> None:
    choice = chosen_in(minutes)
    assert choice.network.size == size
    assert "the largest that makes the passes it needs, 5" in reason(choice)
    assert choice.passes >= 5


def test_if_no_network_makes_enough_passes_the_smallest_is_chosen() -> None:
    choice = chosen_in(1)
    assert choice.network.size == min(SIZES)
    assert "the smallest, since none makes 5 passes" in reason(choice)
    assert choice.passes < 5


def test_a_single_network_is_chosen_whatever_its_passes() -> None:
    choice = choose_network(ROWS, 60, networks_of(1))
    assert reason(choice).startswith("the only one measured; about 0.00384 passes over 15,000 rows")


@pytest.mark.parametrize(("passes", "layers"), [(34, 1), (36, 2)])
def test_a_second_layer_in_the_encoder_needs_more_passes(passes: float, layers: int) -> None:
    seconds = 3600
    speed = passes * ROWS / (TRAINING_SHARE * seconds)
    networks = networks_of(900, 600) | {Network(2, 1, size=300, batch=32): speed}
    assert choose_network(ROWS, seconds, networks).network.encoder_layers == layers


@pytest.mark.parametrize(("layers", "learning_rate"), [(1, 0.003), (2, 0.002)])
def test_a_second_layer_in_the_encoder_has_a_lower_learning_rate(
    layers: int, learning_rate: float
) -> None:
    assert Network(layers, 1, size=300, batch=32).learning_rate == learning_rate


@pytest.mark.parametrize(
    ("network", "text"),
    [
        (Network(1, 1, 300, 64), "1 layer of 300, batches of 64, float32"),
        (Network(2, 1, 300, 32), "2 layers of encoder and 1 of decoder, of 300, batches of 32, fl"),
    ],
    ids=["as many", "more in the encoder"],
)
def test_a_network_is_said(network: Network, text: str) -> None:
    assert str(network).startswith(text)


@pytest.mark.parametrize("minutes", [1, 2, 3, 15])
def test_passes_are_made_beside_the_validations(minutes: int) -> None:
    choice = chosen_in(minutes)
    pairs = TRAINING_SHARE * 60 * minutes * choice.speed
    assert choice.passes == pytest.approx(pairs / ROWS)


@pytest.mark.parametrize(
    ("ratio", "products"),
    [
        pytest.param(0.99, "float32", id="a little less than needed"),
        pytest.param(1.01, "bfloat16", id="a little more"),
    ],
)
def test_rounded_products_must_be_faster(ratio: float, products: str) -> None:
    speed = 400
    rounded = networks_of(speed * FASTER * ratio, products="bfloat16")
    choice = choose_network(ROWS, 3600, networks_of(speed) | rounded)
    assert choice.network.products == products


@pytest.mark.parametrize(
    ("passes", "dropout"),
    [(1, 0.1), (9.9, 0.1), (10.1, 0.3), (19, 0.3), (21, 0.5), (900, 0.5)],
)
def test_the_dropout_grows_with_the_passes(passes: float, dropout: float) -> None:
    seconds = 600
    speed = passes * ROWS / (TRAINING_SHARE * seconds)
    assert choose_network(ROWS, seconds, networks_of(speed)).dropout == dropout


@pytest.mark.parametrize(("passes", "dropout"), [(5, 0.3), (19, 0.3), (21, 0.5)])
def test_with_hallucinated_pairs_the_dropout_is_at_least_0_3(passes: float, dropout: float) -> None:
    """The passes are over rows and pairs."""
    seconds, pairs = 600, 4_000
    speed = passes * (ROWS + pairs) / (TRAINING_SHARE * seconds)
    choice = choose_network(ROWS, seconds, networks_of(speed), pairs)
    assert choice.dropout == dropout
    assert choice.passes == pytest.approx(passes)


# --- validations ---


@pytest.mark.parametrize("seconds", [120, 600, 2400])
@pytest.mark.parametrize("pairs", [100, 5_000, 10**6])
@pytest.mark.parametrize(
    ("loss_speed", "decode_speed"),  # pairs a second
    [
        pytest.param(3000, 400, id="a usual machine"),
        pytest.param(200, 20, id="a slow one"),
        pytest.param(50_000, 9_000, id="a GPU"),
    ],
)
class TestValidations:
    """A size of 0 stands for the whole development set."""

    @pytest.fixture
    def chosen(
        self, seconds: float, pairs: int, loss_speed: float, decode_speed: float
    ) -> Validations:
        return choose_validations(pairs, seconds, loss_speed, decode_speed)

    def test_take_a_small_share_of_the_time(
        self,
        chosen: Validations,
        seconds: float,
        pairs: int,
        loss_speed: float,
        decode_speed: float,
    ) -> None:
        loss_seconds = (chosen.loss_size or pairs) / loss_speed
        decode_seconds = (chosen.decode_size or pairs) / decode_speed
        assert chosen.count * (loss_seconds + decode_seconds) <= VALIDATION_SHARE * seconds

    def test_are_two_to_five(self, chosen: Validations) -> None:
        assert 2 <= chosen.count <= 5

    def test_have_a_size_only_if_it_is_a_part(self, chosen: Validations, pairs: int) -> None:
        assert max(chosen.loss_size, chosen.decode_size) < pairs


@pytest.mark.parametrize(("decode_speed", "count"), [(200, 5), (100, 3), (10, 2)])
def test_slow_decoding_means_fewer_validations_rather_than_few_pairs(
    decode_speed: float, count: int
) -> None:
    chosen = choose_validations(10**6, 600, loss_speed=1000, decode_speed=decode_speed)
    assert chosen.count == count


# --- a plan ---


def plan(gpu: bool = False) -> Plan:
    """Return a plan of 40 minutes, in which ten updates take a second."""
    batch = 64
    network = Network(1, 1, size=400, batch=batch, products="tf32" if gpu else "bfloat16")
    choice = Choice(
        network,
        speed=10.0 * batch,
        pairs=ROWS,
        passes=9.1,
        dropout=0.1,
        compared=2,
        makes_passes=True,
    )
    validations = choose_validations(30_000, 40 * 60, loss_speed=3000, decode_speed=400)
    return Plan(40, choice, validations, gpu, ["640 examples/s"])


def settings(planned: Plan) -> dict[str, Any]:
    """Return the lines of the configuration as options."""
    options: dict[str, Any] = yaml.safe_load("\n".join(schedule_options(planned)))
    return options


def test_a_plan_has_the_updates_of_its_time_without_that_of_validations() -> None:
    assert plan().updates == round(TRAINING_SHARE * 40 * 60 * 10)


def test_a_plan_is_options_of_train() -> None:
    """Five validations, the last at the end, share 0.04 of the time: 19.2 seconds for each.

    Three quarters of that are for decoding 400 pairs a second, the rest for the loss of 3,000. The
    last validation follows the fourth after half of the updates that lie between two others.
    """
    updates = round(TRAINING_SHARE * 40 * 60 * 10)
    every = round(updates / 4.5)
    of_one = (1 - TRAINING_SHARE) * 40 * 60 / 5  # seconds
    assert settings(plan()) == {
        "matmul_dtype": "bfloat16",
        "max_seconds": 40 * 60,
        "valid_steps": every,
        "valid_decode_size": round(0.75 * of_one * 400),
        "valid_loss_size": round(0.25 * of_one * 3000),
        "save_checkpoint_steps": every,
    }


def test_a_plan_for_a_gpu_names_it() -> None:
    for_a_gpu = {"matmul_dtype": "tf32", "gpu_ranks": [0]}
    assert settings(plan(gpu=True)) == settings(plan()) | for_a_gpu


def test_a_plan_has_a_line_with_its_dropout() -> None:
    assert yaml.safe_load(dropout_option(plan())) == {"dropout": [0.1]}


def test_a_plan_says_what_was_measured_and_chosen() -> None:
    assert plan_text(plan()) == [
        "Planned for 40 minutes of this machine's CPU, where it trained",
        "  640 examples/s",
        "Chosen: 1 layer of 400, batches of 64, bfloat16: the largest that makes the passes it "
        "needs, 5; about 9.1 passes over 15,000 rows.",
    ]


def test_a_plan_for_one_minute_says_minute() -> None:
    assert plan_text(replace(plan(), minutes=1))[0].startswith("Planned for 1 minute of this")


def test_a_plan_for_a_gpu_says_so() -> None:
    assert "this machine's GPU" in plan_text(plan(gpu=True))[0]


def test_a_plan_says_that_pairs_are_hallucinated() -> None:
    *_, line = plan_text(replace(plan(), hallucinated=9_926))
    assert line.startswith("Of these rows, 9,926 are hallucinated, since there are at least 10 ")


def test_a_long_plan_is_written_with_all_digits() -> None:
    assert settings(replace(plan(), minutes=99_999))["max_seconds"] == 99_999 * 60


def test_a_plan_has_at_least_one_update() -> None:
    short = replace(plan(), minutes=0.0001)
    assert short.updates == 1
    assert settings(short)["valid_steps"] == 1
