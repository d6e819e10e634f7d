"""How often, and on how many pairs, a training that `prepare --minutes` plans is validated."""

import pytest

from onmt_entmax.cli.plans import Validations, choose_validations


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
    """A size of 0 stands for the whole development set, which has `pairs` pairs."""

    @pytest.fixture
    def chosen(
        self, seconds: float, pairs: int, loss_speed: float, decode_speed: float
    ) -> Validations:
        return choose_validations(pairs, seconds, loss_speed, decode_speed)

    def test_take_at_most_a_twentieth_of_the_time(
        self,
        chosen: Validations,
        seconds: float,
        pairs: int,
        loss_speed: float,
        decode_speed: float,
    ) -> None:
        loss_seconds = (chosen.loss_size or pairs) / loss_speed
        decode_seconds = (chosen.decode_size or pairs) / decode_speed
        assert chosen.count * (loss_seconds + decode_seconds) <= 0.05 * seconds

    def test_are_two_to_five(self, chosen: Validations) -> None:
        assert 2 <= chosen.count <= 5

    def test_have_a_size_only_if_it_is_less_than_the_set(
        self, chosen: Validations, pairs: int
    ) -> None:
        assert max(chosen.loss_size, chosen.decode_size) < pairs


@pytest.mark.parametrize(
    ("decode_speed", "count"),
    [
        # Validations take 0.04 of 600 seconds, and decoding three quarters of that: 18 seconds.
        pytest.param(200, 5, id="720 pairs in each of five"),
        pytest.param(100, 3, id="360 pairs in each of five, 600 in each of three"),
        pytest.param(10, 2, id="90 pairs in each of two"),
    ],
)
def test_there_are_fewer_validations_if_each_would_decode_less_than_500_pairs(
    decode_speed: float, count: int
) -> None:
    chosen = choose_validations(10**6, 600, loss_speed=1000, decode_speed=decode_speed)
    assert chosen.count == count


def test_three_quarters_of_the_time_of_validations_are_for_decoding() -> None:
    """Five validations have 4 % of 2,400 seconds: 19.2 seconds each."""
    chosen = choose_validations(30_000, 2400, loss_speed=3000, decode_speed=400)
    assert chosen == Validations(
        count=5, loss_size=round(4.8 * 3000), decode_size=round(14.4 * 400)
    )
