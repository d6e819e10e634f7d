"""The rule by which `prepare --minutes` plans, as a function of measured speeds."""

from dataclasses import replace

import pytest
import yaml

from onmt_entmax.cli.plans import (
    FASTER,
    PASSES,
    SIZES,
    VALIDATION_SHARE,
    Choice,
    Network,
    Plan,
    candidates,
    choose_network,
    choose_validations,
)

ROWS = 15_000  # of the training data


def speeds_of(*speeds: float, products: str = "float32") -> dict[Network, float]:
    sizes = zip(SIZES, speeds, strict=False)
    return {Network(1, size, 64, products): speed for size, speed in sizes}


@pytest.mark.parametrize(("rows", "batch"), [(1_999, 32), (2_000, 64)])
def test_candidates_differ_in_size_and_products(rows: int, batch: int) -> None:
    found = candidates(rows, gpu=False)
    assert [*dict.fromkeys(network.size for network in found)] == [*SIZES]
    assert {network.products for network in found} == {"float32", "bfloat16"}
    assert {(network.layers, network.batch) for network in found} == {(1, batch)}
    assert {network.products for network in candidates(rows, gpu=True)} == {"float32", "tf32"}


def test_what_the_user_chose_is_not_searched() -> None:
    assert candidates(100, False, layers=2, size=350, batch=16) == [
        Network(2, 350, 16, products) for products in ("float32", "bfloat16")
    ]


@pytest.mark.parametrize(
    ("minutes", "size", "why"),
    [
        (15, 300, "the largest that makes 5 passes"),
        (3, 300, "the largest that makes 5 passes"),
        (2, 200, "the largest that makes 5 passes"),
        (1, 200, "the smallest, since none makes 5 passes"),
    ],
)
def test_the_largest_network_that_makes_enough_passes(minutes: int, size: int, why: str) -> None:
    choice = choose_network(ROWS, 60 * minutes, speeds_of(900, 600))
    assert choice.network.size == size
    assert why in choice.reason
    # Validations have their share of the time.
    assert choice.passes == pytest.approx(0.96 * 60 * minutes * choice.speed / ROWS)
    assert (choice.passes >= PASSES) is (minutes > 1)


@pytest.mark.parametrize(("ratio", "products"), [(0.99, "float32"), (1.01, "bfloat16")])
def test_rounded_products_must_be_faster(ratio: float, products: str) -> None:
    rounded = speeds_of(400 * FASTER * ratio, products="bfloat16")
    choice = choose_network(ROWS, 3600, speeds_of(400) | rounded)
    assert choice.network.products == products


@pytest.mark.parametrize(
    ("passes", "dropout"), [(1, 0.1), (9.9, 0.1), (10.1, 0.3), (19, 0.3), (21, 0.5), (900, 0.5)]
)
def test_the_dropout_grows_with_the_passes(passes: float, dropout: float) -> None:
    speed = passes * ROWS / (0.96 * 600)
    assert choose_network(ROWS, 600, speeds_of(speed)).dropout == dropout


@pytest.mark.parametrize("seconds", [120, 600, 2400])
@pytest.mark.parametrize("pairs", [100, 5_000, 10**6])
@pytest.mark.parametrize(("loss", "decode"), [(3000, 400), (200, 20), (50_000, 9_000)])
def test_validations_take_a_small_share_of_the_time(
    seconds: float, pairs: int, loss: float, decode: float
) -> None:
    chosen = choose_validations(pairs, seconds, loss, decode)
    each = (chosen.loss_size or pairs) / loss + (chosen.decode_size or pairs) / decode
    assert chosen.count * each <= VALIDATION_SHARE * seconds
    assert 2 <= chosen.count <= 5
    assert max(chosen.loss_size, chosen.decode_size) < pairs  # 0 is all of them


def test_slow_decoding_means_fewer_validations_rather_than_few_pairs() -> None:
    assert choose_validations(10**6, 600, 1000, 200).count == 5
    assert choose_validations(10**6, 600, 1000, 100).count == 3
    assert choose_validations(10**6, 600, 1000, 10).count == 2


def plan(gpu: bool = False) -> Plan:
    network = Network(1, 400, 64, "tf32" if gpu else "bfloat16")
    choice = Choice(network, 640.0, 9.1, 0.1, "the largest")
    return Plan(40, choice, choose_validations(30_000, 2400, 3000, 400), gpu, ["640 examples/s"])


def settings(of: Plan) -> dict[str, object]:
    return yaml.safe_load("\n".join(of.settings))


def test_a_plan_is_options_of_train() -> None:
    options = settings(plan())
    assert plan().updates == 23_040  # of 10 a second, without the validations' time
    assert options == {
        "matmul_dtype": "bfloat16",
        "max_seconds": 2400,
        "valid_steps": 5120,  # the fifth time is the end
        "valid_decode_size": 5760,
        "valid_loss_size": 14_400,
        "save_checkpoint_steps": 5120,
    }
    more = {"matmul_dtype": "tf32", "gpu_ranks": [0]}
    assert settings(plan(gpu=True)) == options | more
    assert yaml.safe_load(plan().dropout_line) == {"dropout": [0.1]}


def test_a_plan_says_what_was_measured_and_chosen() -> None:
    assert plan().lines == [
        "Planned for 40 minutes of this machine's CPU, where it trained",
        "  640 examples/s",
        "Chosen: 1 layer of 400, batches of 64, bfloat16: the largest.",
    ]
    assert "this machine's GPU" in plan(gpu=True).lines[0]


def test_a_plan_says_that_pairs_are_hallucinated() -> None:
    line = replace(plan(), hallucinated=9_926).lines[-1]
    assert line.startswith("Of these rows, 9,926 are hallucinated, since there are at least 20 ")


def test_a_long_plan_is_written_with_all_digits() -> None:
    assert settings(replace(plan(), minutes=99_999))["max_seconds"] == 5_999_940


def test_a_plan_has_at_least_one_update() -> None:
    short = replace(plan(), minutes=0.0001)
    assert short.updates == 1
    assert settings(short)["valid_steps"] == 1
