"""JSON that is written: strict JSON, which has neither infinity nor NaN."""

import math
from collections.abc import Callable

import pytest

from onmt_entmax.files import json_line, json_text
from onmt_entmax.files.parsing import parse_json


@pytest.mark.parametrize("write", [json_line, json_text])
def test_json_has_null_for_numbers_that_are_not_finite(write: Callable[[object], str]) -> None:
    content = {"a": [math.inf, (-math.inf, 1.5)], "b": {"c": math.nan}, "d": "ä", "e": None, "f": 1}
    expected = {"a": [None, [None, 1.5]], "b": {"c": None}, "d": "ä", "e": None, "f": 1}
    assert parse_json(write(content)) == expected


@pytest.mark.parametrize("write", [json_line, json_text])
def test_json_ends_with_a_line_feed(write: Callable[[object], str]) -> None:
    assert write({"a": {"b": 1}}).endswith("}\n")


def test_a_json_line_is_one_line() -> None:
    assert json_line({"a": [1, 2], "b": "x\ny"}).count("\n") == 1
