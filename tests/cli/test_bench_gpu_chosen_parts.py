"""The parts of the benchmark of a GPU that `--only` names."""

import pytest

from onmt_entmax.errors import UserError
from tools.bench.gpu import chosen_parts

NAMES = ["checks-loss", "checks-updates", "steps-1", "losses"]


def test_parts_are_chosen_by_their_names_and_keep_their_order() -> None:
    assert chosen_parts("losses,steps-1", NAMES) == ["steps-1", "losses"]


def test_a_group_has_all_its_parts() -> None:
    assert chosen_parts("checks", NAMES) == ["checks-loss", "checks-updates"]


def test_by_default_all_parts_are_chosen() -> None:
    assert chosen_parts(None, NAMES) == NAMES


def test_an_unknown_part_is_refused_beside_a_known_one() -> None:
    with pytest.raises(UserError, match="no such part: lossses; there are checks-loss, "):
        chosen_parts("steps-1,lossses", NAMES)
