"""Texts for the user: numbers and the nouns after them."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

import onmt_entmax
from onmt_entmax.errors import counted


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(0, "line", "0 lines"), (1, "batch", "1 batch"), (2000, "prefix", "2,000 prefixes")],
)
def test_counted(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text


def test_lengths_are_counted() -> None:
    """A length before a plural, which may be 1, is the business of `counted`."""
    found = []
    for path in Path(onmt_entmax.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = node.values if isinstance(node, ast.JoinedStr) else []
            for value, after in pairwise(parts):
                a_length = isinstance(value, ast.FormattedValue) and "len(" in ast.unparse(value)
                text = after.value if a_length and isinstance(after, ast.Constant) else ""
                if re.match(r" (\w+ )?\w+[^s\W]s\b", text) and "counted" not in ast.unparse(value):
                    found.append(f"{path.name}:{node.lineno}: {text}")
    assert not found
