"""Printed rows of `onmt-entmax inflect`, and queries at its standard input."""

import io
from typing import NamedTuple

import pytest


class Row(NamedTuple):
    """The columns of a printed row."""

    language: str
    lemma: str
    tags: str
    rank: str
    form: str
    prob: str
    level: str
    warnings: str


def rows_of(printed: str) -> list[Row]:
    """Return printed rows, each of which must have these columns."""
    return [Row(*line.split("\t")) for line in printed.splitlines()]


def type_lines(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Replace the standard input by a text."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
