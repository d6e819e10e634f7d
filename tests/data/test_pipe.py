"""`Pipe`: the pairs that a chain of transforms leaves out, and the order of inverses."""

from argparse import Namespace
from typing import Any

import pytest

from onmt_entmax.data.transforms import Pipe
from onmt_entmax.opennmt import Transform


class Emptying(Transform):
    """A transform that removes all tokens of the target."""

    def apply(self, pair: dict[str, Any], *_: object, **more: object) -> dict[str, Any]:
        return {**pair, "tgt": []}


@pytest.fixture
def emptying() -> Pipe:
    return Pipe.build_from([Emptying(Namespace(seed=-1))])  # -1: no seed of its own


def test_a_pair_with_an_empty_side_is_dropped_if_both_are_needed(emptying: Pipe) -> None:
    assert emptying.tokens("a", "b", corpus="train", is_train=True, drop_empty=True) is None


def test_a_pair_with_an_empty_side_stays_if_one_is_enough(emptying: Pipe) -> None:
    assert emptying.tokens("a", "b", corpus="translate") == (["a"], [])


class Appending(Transform):
    """A transform whose inverse appends its name.

    Args:
        name: appended to the text.
    """

    def __init__(self, name: str) -> None:
        super().__init__(Namespace(seed=-1))
        self._name = name

    def apply_reverse(self, translated: str) -> str:
        return f"{translated} {self._name}"


def test_the_last_transform_is_undone_first() -> None:
    pipe = Pipe.build_from([Appending("first"), Appending("last")])
    assert pipe.apply_reverse("text") == "text last first"
