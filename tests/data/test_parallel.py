"""Development sets held out of parallel text."""

import pytest

from onmt_entmax.data.parallel import hold_out
from onmt_entmax.errors import UserError

# Many pairs share a sentence on one side; one pair has an empty side.
PAIRS = [(f"s{number % 40}", f"t{number % 30}") for number in range(200)] + [("", "t1")]


def test_a_held_out_set_has_its_size_and_no_pair_twice() -> None:
    _, held_out = hold_out(PAIRS, 5, seed=1)
    assert len(held_out) == len(set(held_out)) == 5


@pytest.mark.parametrize("side", [0, 1], ids=["source", "target"])
def test_a_held_out_set_shares_no_sentence_with_training(side: int) -> None:
    train, held_out = hold_out(PAIRS, 5, seed=1)
    assert not {pair[side] for pair in train} & {pair[side] for pair in held_out}


def test_the_seed_determines_what_is_held_out() -> None:
    assert hold_out(PAIRS, 5, seed=1) == hold_out(PAIRS, 5, seed=1) != hold_out(PAIRS, 5, seed=2)


def test_no_more_can_be_held_out_than_there_is() -> None:
    with pytest.raises(UserError, match=r"cannot hold out 500 .* lower --val_size"):
        hold_out(PAIRS, 500, seed=1)
