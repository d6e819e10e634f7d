"""Rules for values that people write: types, ranges and known words."""

import math
from argparse import ArgumentTypeError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


@dataclass(frozen=True)
class Rule:
    """What a value may be.

    Attributes:
        kind: its type; a float may be written as a whole number, and booleans are not numbers.
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

    def __call__(self, text: str) -> Any:
        """Return the number that a text stands for; for `type=` of an argument of argparse.

        Raises:
            ArgumentTypeError: it does not follow the rule.
        """
        if text in self.names:
            return text
        with suppress(ValueError):
            if self.fits(value := self.kind(text)):
                return value
        raise ArgumentTypeError(f"{self}, not {shown(text)}")

    def __str__(self) -> str:
        words = [] if self.off is ... else [str(self.off).lower()]
        if self.kind not in (int, float):
            named = f"one of {', '.join(self.names)}" if self.names else ""
            words.append(named or _WORDS.get(self.kind, "a mapping"))
        elif self.above or self.below:
            low = f"{'above' if self.above else 'at least'} {self.low:,}"
            words.append(f"{low} and {'below' if self.below else 'at most'} {self.high:,}")
        else:
            span = f"{_WORDS[self.kind]} from {self.low:,} to {self.high:,}"
            words += [*self.names, f"{span}{self.note}"]
        return f"must be {' or '.join(words)}"

    def schema(self) -> dict[str, Any]:
        """Return the rule in JSON Schema."""
        kinds = {str: "string", int: "integer", float: "number"}
        schema: dict[str, Any] = {"type": kinds.get(self.kind, "object")}
        if self.kind is bool:
            schema = {"enum": [True, False, 0, 1]}
        elif self.kind in (int, float):
            bounds = {
                "exclusiveMinimum" if self.above else "minimum": self.low,
                "exclusiveMaximum" if self.below else "maximum": self.high,
            }
            # JSON has no infinity.
            schema |= {name: bound for name, bound in bounds.items() if math.isfinite(bound)}
        elif self.names:
            schema["enum"] = list(self.names)
        return schema if self.off is ... else {"anyOf": [{"const": self.off}, schema]}


def whole(low: int, high: int, off: Any = ...) -> Rule:
    """Return the rule for whole numbers from `low` to `high`, or `off`."""
    return Rule(int, low, high, off=off)


def number(low: float, high: float, note: str = "") -> Rule:
    """Return the rule for numbers from `low` to `high`."""
    return Rule(float, low, high, note=note)


def positive(high: float) -> Rule:
    """Return the rule for numbers above 0 and at most `high`."""
    return Rule(float, 0, high, above=True)


def one_of(*names: str, off: Any = ...) -> Rule:
    """Return the rule for some words, or `off`."""
    return Rule(str, names=names, off=off)


SHARE = Rule(float, 0, 1, below=True)
FLAG = Rule(bool)


def shown(value: object) -> str:
    """Return a value for a message: one short line, whatever it is."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # integers of thousands of digits; nested lists
        text = f"this {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."
