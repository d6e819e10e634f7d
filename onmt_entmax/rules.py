"""Rules for values that people write: types, ranges and known names.

An option and the key of a model folder with the same name share one rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Rule:
    """What a value may be.

    Attributes:
        kind: its type; a float may be written as a whole number, and true is no number.
        low: smallest number.
        high: largest number.
        above: numbers must be above `low`, not at least `low`.
        below: numbers must be below `high`, not at most `high`.
        names: the known words; if empty, every word is. Of a number: words that may replace it.
        off: a value outside the range that is allowed too.
        note: follows the range in messages.
    """

    kind: type
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    below: bool = False
    names: tuple[str, ...] = ()
    off: Any = ...  # none
    note: str = ""

    def fits(self, value: object) -> bool:
        """Whether a value follows the rule."""
        if type(value) is type(self.off) and value == self.off:
            return True
        if type(value) is str and self.names:
            return value in self.names
        if type(value) is not self.kind and not (self.kind is float and type(value) is int):
            return False
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return True
        over = value > self.low if self.above else value >= self.low
        under = value < self.high if self.below else value <= self.high
        return over and under

    def __str__(self) -> str:
        off = "" if self.off is ... else f"{str(self.off).lower()} or "
        if self.kind is bool:
            return "must be true or false"
        if self.kind is str:
            return f"must be {off}{'one of ' + ', '.join(self.names) if self.names else 'a word'}"
        if self.above or self.below:
            low = f"{'above' if self.above else 'at least'} {self.low:,}"
            return f"must be {off}{low} and {'below' if self.below else 'at most'} {self.high:,}"
        number = "a number" if self.kind is float else "a whole number"
        off += "".join(f"{name} or " for name in self.names)
        return f"must be {off}{number} from {self.low:,} to {self.high:,}{self.note}"


def whole(low: int, high: int, off: Any = ...) -> Rule:
    """Return the rule for whole numbers from `low` to `high`, or `off`."""
    return Rule(int, low, high, off=off)


def number(low: float, high: float, note: str = "") -> Rule:
    """Return the rule for numbers from `low` to `high`."""
    return Rule(float, low, high, note=note)


def positive(high: float) -> Rule:
    """Return the rule for numbers above 0 and at most `high`."""
    return Rule(float, 0, high, above=True)


def one_of(*names: str) -> Rule:
    """Return the rule for some words."""
    return Rule(str, names=names)


SHARE = Rule(float, 0, 1, below=True)
FLAG = Rule(bool)


def shown(value: object) -> str:
    """Return a value for a message: one short line, whatever it is."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # integers of thousands of digits; nested lists
        text = f"this {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."
