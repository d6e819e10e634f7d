"""Rules for values that people write: types, ranges and known words.

An option of a YAML file, an argument of a command and a field of a record each have one `Rule`. It
checks a value, says in an error what the value must be, and describes it in JSON Schema.
"""

import math
from argparse import ArgumentTypeError
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _Kind:
    """How messages and JSON Schema call a type."""

    words: str
    schema: str


_KINDS: dict[type, _Kind] = {
    str: _Kind("text", "string"),
    int: _Kind("a whole number", "integer"),
    float: _Kind("a number", "number"),
    bool: _Kind("true or false", "boolean"),
    dict: _Kind("a mapping", "object"),
    list: _Kind("a list", "array"),
}


@dataclass(frozen=True)
class Rule:
    """What a value may be.

    Attributes:
        kind: its type; a float may be written as a whole number, and booleans are not numbers.
        low: smallest number.
        high: largest number.
        without_low: numbers must be above `low`, not at least `low`.
        without_high: numbers must be below `high`, not at most `high`.
        names: the allowed words; empty: all words. In a rule for numbers, words that may replace
            a number.
        off: a value outside the range that is allowed too; `...` if there is none, since None may
            be such a value.
        note: follows the range of a number in messages.
    """

    kind: type
    low: float = -math.inf
    high: float = math.inf
    without_low: bool = False
    without_high: bool = False
    names: tuple[str, ...] = ()
    off: Any = ...
    note: str = ""

    def fits(self, value: object) -> bool:
        """Return whether a value follows the rule."""
        # Types are compared, too, since True == 1.
        if type(value) is type(self.off) and value == self.off:
            return True
        if type(value) is str and self.names:
            return value in self.names
        is_whole_for_float = self.kind is float and type(value) is int
        if type(value) is not self.kind and not is_whole_for_float:
            return False
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return True  # without a range
        is_over = value > self.low if self.without_low else value >= self.low
        is_under = value < self.high if self.without_high else value <= self.high
        return is_over and is_under

    def __call__(self, text: str) -> Any:
        """Return the number, or the name in its place, that a text stands for.

        This makes a rule for numbers a `type=` of an argument of argparse.

        Raises:
            ArgumentTypeError: it does not follow the rule.
            TypeError: the rule is not for numbers; `bool("false")`, for one, is True.
        """
        if not self._is_for_numbers:
            raise TypeError(f"a rule for {self.kind.__name__} reads no text")
        if text in self.names:
            return text
        try:
            value = self.kind(text)
        except ValueError:
            value = None
        if value is None or not self.fits(value):
            raise ArgumentTypeError(f"{self}, not {shown(text)}")
        return value

    def __str__(self) -> str:
        allowed = [] if self.off is ... else [str(self.off).lower()]
        if self._is_for_numbers:
            allowed += [*self.names, f"{self._range()}{self.note}"]
        elif self.names:
            allowed.append(f"one of {', '.join(self.names)}")
        else:
            allowed.append(_KINDS[self.kind].words)
        return f"must be {' or '.join(allowed)}"

    @property
    def _is_for_numbers(self) -> bool:
        return self.kind in (int, float)

    def _range(self) -> str:
        """Return the range of a number in words."""
        if not self.without_low and not self.without_high:
            return f"{_KINDS[self.kind].words} from {self.low:,} to {self.high:,}"
        low = "above" if self.without_low else "at least"
        high = "below" if self.without_high else "at most"
        return f"{low} {self.low:,} and {high} {self.high:,}"

    def schema(self) -> dict[str, Any]:
        """Return the rule in JSON Schema: what `fits` allows.

        JSON Schema has no whole numbers that are not also written as 2.0, which `fits` refuses.
        """
        schema: dict[str, Any] = {"type": _KINDS[self.kind].schema}
        others: list[dict[str, Any]] = [] if self.off is ... else [{"const": self.off}]
        if self._is_for_numbers:
            bounds = {
                "exclusiveMinimum" if self.without_low else "minimum": self.low,
                "exclusiveMaximum" if self.without_high else "maximum": self.high,
            }
            # JSON has no infinity.
            schema |= {name: bound for name, bound in bounds.items() if math.isfinite(bound)}
            if self.names:
                others.append({"enum": list(self.names)})
        elif self.names:
            schema["enum"] = list(self.names)
        return {"anyOf": [*others, schema]} if others else schema


def whole(low: int, high: int, off: Any = ...) -> Rule:
    """Return the rule for whole numbers from `low` to `high`, or `off`."""
    return Rule(int, low, high, off=off)


def number(low: float, high: float, note: str = "") -> Rule:
    """Return the rule for numbers from `low` to `high`."""
    return Rule(float, low, high, note=note)


def positive(high: float) -> Rule:
    """Return the rule for numbers above 0 and at most `high`."""
    return Rule(float, 0, high, without_low=True)


def one_of(*names: str, off: Any = ...) -> Rule:
    """Return the rule for some words, or `off`."""
    return Rule(str, names=names, off=off)


SHARE = Rule(float, 0, 1, without_high=True)
FLAG = Rule(bool)


def shown(value: object) -> str:
    """Return a value for a message: one short line, whatever it is."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # integers of thousands of digits; nested lists
        text = f"this {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."
