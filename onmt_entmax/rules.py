"""Rules for values that people write: types, ranges and known words.

An option of a YAML file, an argument of a command and a field of a record each have one `Rule`. It
checks a value (`fits`), says in an error what the value must be (`str`), and describes it in JSON
Schema (`schema`):

    whole(1, 10)                        must be a whole number from 1 to 10
    whole(1, 10, off=-1)                must be -1 or a whole number from 1 to 10
    Rule(int, 1, 10, names=("all",))    must be all or a whole number from 1 to 10
    positive(1)                         must be above 0 and at most 1
    one_of("on", "off")                 must be one of on, off
    FLAG                                must be true or false
"""

import math
from argparse import ArgumentTypeError
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _KindNames:
    """The names of a type: in messages (`words`), and in JSON Schema (`schema`)."""

    words: str
    schema: str


_NAMES_OF: dict[type, _KindNames] = {
    str: _KindNames("text", "string"),
    int: _KindNames("a whole number", "integer"),
    float: _KindNames("a number", "number"),
    bool: _KindNames("true or false", "boolean"),
    dict: _KindNames("a mapping", "object"),
    list: _KindNames("a list", "array"),
}


@dataclass(frozen=True)
class Rule:
    """The values that are allowed.

    Attributes:
        kind: type of the values; a float may be written as a whole number, and booleans are not
            numbers.
        low: lower bound of a number.
        high: upper bound of a number.
        excludes_low: whether a number must differ from `low`.
        excludes_high: whether a number must differ from `high`.
        names: in a rule for texts, the texts that are allowed; empty: all texts are. In a rule for
            numbers, words that are allowed, too.
        off: one more value that is allowed, such as -1 for an option that is not set. `...` means
            that there is none, since None may be such a value.
        note: text after the range of a number in messages, such as ` (1 is softmax)`.
    """

    kind: type
    low: float = -math.inf
    high: float = math.inf
    excludes_low: bool = False
    excludes_high: bool = False
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
            return True  # only numbers have a range
        is_over = value > self.low if self.excludes_low else value >= self.low
        is_under = value < self.high if self.excludes_high else value <= self.high
        return is_over and is_under

    def __call__(self, text: str) -> Any:
        """Return the number that a text stands for, or the text if it is one of `names`.

        This makes a rule for numbers a possible `type` of an argument of argparse.

        Raises:
            ArgumentTypeError: if it does not follow the rule.
            TypeError: if the rule is not for numbers: conversions of other types misread texts, as
                `bool("false")` is True.
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
            allowed.append(_NAMES_OF[self.kind].words)
        return f"must be {' or '.join(allowed)}"

    @property
    def _is_for_numbers(self) -> bool:
        return self.kind in (int, float)

    def _range(self) -> str:
        """Return the range of a number in words."""
        if not self.excludes_low and not self.excludes_high:
            return f"{_NAMES_OF[self.kind].words} from {self.low:,} to {self.high:,}"
        low = "above" if self.excludes_low else "at least"
        high = "below" if self.excludes_high else "at most"
        return f"{low} {self.low:,} and {high} {self.high:,}"

    def schema(self) -> dict[str, Any]:
        """Return the rule in JSON Schema, which allows what `fits` allows, with one exception.

        In JSON Schema, 2.0 is a whole number; `fits` refuses it.
        """
        schema: dict[str, Any] = {"type": _NAMES_OF[self.kind].schema}
        others: list[dict[str, Any]] = [] if self.off is ... else [{"const": self.off}]
        if self._is_for_numbers:
            bounds = {
                "exclusiveMinimum" if self.excludes_low else "minimum": self.low,
                "exclusiveMaximum" if self.excludes_high else "maximum": self.high,
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
    return Rule(float, 0, high, excludes_low=True)


def one_of(*names: str, off: Any = ...) -> Rule:
    """Return the rule for some words, or `off`."""
    return Rule(str, names=names, off=off)


SHARE = Rule(float, 0, 1, excludes_high=True)
"""The rule for numbers from 0 to below 1, such as a dropout probability"""
FLAG = Rule(bool)
"""The rule for options that are true or false"""


def shown(value: object) -> str:
    """Return any value as one short line, for a message about a value that breaks a rule."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # integers of thousands of digits; nested lists
        text = f"this {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."
