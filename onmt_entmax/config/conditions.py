"""Conditions on the values of other options, under which an option has an effect.

    needs=IsOn("tgt")                 # only read if `tgt` has a value
    needs=Equals("search", "exact")   # only read with `search: exact`
    needs=HasKey("data", "valid")     # only read if `data` has a corpus named `valid`
    needs=AnyOf(IsOn("topk"), IsOn("topp"))

The text of a condition is what an error tells the user to set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class IsOn:
    """The option is on: its value is not None, 0, false, an empty text or an empty list.

    Attributes:
        option: name of the option.
        off: a name among its values that also turns it off, such as the penalty `none`.
    """

    option: str
    off: str | None = None

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Return whether the values of all options meet the condition."""
        value = values[self.option]
        return bool(value) and value != self.off

    def __str__(self) -> str:
        return self.option


@dataclass(frozen=True)
class Equals:
    """The option has this value."""

    option: str
    value: str

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Return whether the values of all options meet the condition."""
        return bool(values[self.option] == self.value)

    def __str__(self) -> str:
        return f"{self.option}: {self.value}"


@dataclass(frozen=True)
class HasKey:
    """The option is a mapping with this key."""

    option: str
    key: str

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Return whether the values of all options meet the condition."""
        return self.key in values[self.option]

    def __str__(self) -> str:
        return f"{self.option}: {self.key}"


class AnyOf:
    """At least one of several conditions holds."""

    def __init__(self, *conditions: SingleCondition) -> None:
        self.conditions = conditions

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Return whether the values of all options meet the condition."""
        return any(condition.holds(values) for condition in self.conditions)

    def __str__(self) -> str:
        return " or ".join(map(str, self.conditions))


SingleCondition = IsOn | Equals | HasKey
Condition = SingleCondition | AnyOf
