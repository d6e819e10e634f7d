"""The networks that `prepare --minutes` measures before it chooses one."""

import pytest

from onmt_entmax.cli.planned_networks import Network, candidates

# The numbers are those of the documentation: docs/guide-plans.md.
SIZES = [200, 300]
ROWS = 15_000  # of training data: enough for any network


@pytest.mark.parametrize("gpu", [False, True], ids=["CPU", "GPU"])
def test_candidates_have_each_size(gpu: bool) -> None:
    assert {network.size for network in candidates(ROWS, gpu=gpu)} == {*SIZES}


def test_candidates_begin_with_the_smallest() -> None:
    sizes = [network.size for network in candidates(ROWS, gpu=False)]
    assert sizes == sorted(sizes)


@pytest.mark.parametrize(
    ("gpu", "products"),
    [
        pytest.param(False, {"float32", "bfloat16"}, id="CPU"),
        pytest.param(True, {"float32", "tf32"}, id="GPU"),
    ],
)
def test_candidates_have_each_type_of_products_of_the_device(gpu: bool, products: set[str]) -> None:
    assert {network.products for network in candidates(ROWS, gpu=gpu)} == products


@pytest.mark.parametrize(("rows", "batch"), [(1_999, 32), (2_000, 64)], ids=["few", "many"])
def test_networks_of_one_layer_have_larger_batches_with_many_rows(rows: int, batch: int) -> None:
    networks = [network for network in candidates(rows, gpu=False) if network.encoder_layers == 1]
    assert {network.batch for network in networks} == {batch}


def test_with_few_rows_no_network_has_a_second_layer() -> None:
    networks = candidates(9_999, gpu=False)
    assert {(network.encoder_layers, network.decoder_layers) for network in networks} == {(1, 1)}


def test_with_many_rows_the_first_networks_have_a_layer_each_in_encoder_and_decoder() -> None:
    networks = candidates(10_000, gpu=False)[:-2]
    assert {(network.encoder_layers, network.decoder_layers) for network in networks} == {(1, 1)}


def test_with_many_rows_the_last_networks_have_a_second_layer_in_the_encoder() -> None:
    assert candidates(10_000, gpu=False)[-2:] == [
        Network(2, 1, size=300, batch=32, products=products) for products in ("float32", "bfloat16")
    ]


def test_only_products_are_compared_if_the_user_chose_the_rest() -> None:
    assert candidates(ROWS, gpu=False, layers=2, size=350, batch=16) == [
        Network(2, 2, size=350, batch=16, products=products) for products in ("float32", "bfloat16")
    ]
