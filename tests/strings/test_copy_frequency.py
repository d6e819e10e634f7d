"""The `copy_frequency` that suits training data."""

import pytest

from onmt_entmax.strings.copy_frequency import useful_frequency

COMMON = ("ab", "ab")
"""A pair of frequent symbols"""


@pytest.mark.parametrize(
    ("pairs", "frequency"),
    [
        pytest.param(
            [*[COMMON] * 300, ("ax", "ax"), ("ay", "ay"), ("az", "a")],
            3,  # 1 % of 303 pairs; x and y are copied, z is not
            id="most rare symbols are copied",
        ),
        pytest.param(
            [*[COMMON] * 300, ("ax", "ax"), ("ay", "a"), ("az", "a")], 0, id="one of three is"
        ),
        pytest.param([*[COMMON] * 300, ("ax", "ax"), ("ay", "a")], 0, id="one of two is"),
        pytest.param(
            [*[COMMON] * 9000, *[("ax", "ax")] * 49],
            50,  # not 90, 1 % of the pairs
            id="49 sources have x, which is rare",
        ),
        pytest.param([*[COMMON] * 9000, *[("ax", "ax")] * 50], 0, id="50 do: no symbol is rare"),
        pytest.param([COMMON, ("cd", "cd")], 2, id="two pairs"),
        pytest.param([], 0, id="no pairs"),
    ],
)
def test_rare_symbols_are_copied_if_enough_pairs_copy_theirs(
    pairs: list[tuple[str, str]], frequency: int
) -> None:
    assert useful_frequency(pairs, alike=True) == frequency


@pytest.mark.parametrize(
    ("sources_with_x", "frequency"),
    [
        (19, 0),
        (20, 21),  # 1 % of 2,120 pairs
    ],
)
def test_between_units_of_two_kinds_few_rare_symbols_say_nothing(
    sources_with_x: int, frequency: int
) -> None:
    pairs = [*[COMMON] * 2100, *[("ax", "ax")] * sources_with_x]
    assert useful_frequency(pairs, alike=False) == frequency
