"""`Pipe`: transforms in order, undone in reverse, and the pairs that it drops."""

from argparse import Namespace
from typing import Any

import pytest

from onmt_entmax.data.transforms import Pipe
from onmt_entmax.opennmt import Transform


class Appending(Transform):
    """A transform that appends a token to the target, and a letter when it is undone."""

    def __init__(self, letter: str) -> None:
        super().__init__(Namespace(seed=-1))  # -1: no seed of its own
        self.letter = letter

    def apply(self, pair: dict[str, Any], *_: object, **more: object) -> dict[str, Any]:
        return {**pair, "tgt": [*pair["tgt"], self.letter]}

    def apply_reverse(self, translated: str) -> str:
        return translated + self.letter


class Emptying(Transform):
    """A transform that removes all tokens of the target."""

    def __init__(self) -> None:
        super().__init__(Namespace(seed=-1))

    def apply(self, pair: dict[str, Any], *_: object, **more: object) -> dict[str, Any]:
        return {**pair, "tgt": []}


@pytest.fixture
def appending() -> Pipe:
    return Pipe.build_from([Appending("x"), Appending("y")])


def test_transforms_are_applied_from_the_first_to_the_last(appending: Pipe) -> None:
    assert appending.tokens("a", "b", corpus="train") == (["a"], ["b", "x", "y"])


def test_transforms_are_undone_from_the_last_to_the_first(appending: Pipe) -> None:
    assert appending.apply_reverse("b") == "byx"


@pytest.mark.parametrize(
    ("drop_empty", "tokens"),
    [pytest.param(True, None, id="dropped"), pytest.param(False, (["a"], []), id="kept")],
)
def test_drop_empty_decides_whether_a_pair_with_an_empty_side_is_dropped(
    drop_empty: bool, tokens: tuple[list[str], list[str]] | None
) -> None:
    pipe = Pipe.build_from([Emptying()])
    assert pipe.tokens("a", "b", corpus="train", drop_empty=drop_empty) == tokens


def test_a_pair_is_dropped_even_if_a_later_transform_would_fill_its_empty_side() -> None:
    """Some transforms fail on an empty side, so it is checked after each one."""
    pipe = Pipe.build_from([Emptying(), Appending("x")])
    assert pipe.tokens("a", "b", corpus="train", drop_empty=True) is None
