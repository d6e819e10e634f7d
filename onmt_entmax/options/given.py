"""The options of a command that were read: their values and where each was set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from onmt_entmax.config import declared
from onmt_entmax.options.notes import Notes
from onmt_entmax.options.values import OptionError

COMMAND_LINE = "command line"
"""Where flags come from, in `Options.origin` and in messages"""


@dataclass(frozen=True)
class Options:
    """Values of all options, defaults included.

    The values are not changed: `with_values` returns other options. These share the notes, to which
    each function adds that replaces values.

    Attributes:
        values: values by OpenNMT-py's names.
        origin: where the user set each option: the name of a file, or `COMMAND_LINE`; options with
            their default are absent.
        notes: notes for the user on the options that were set.
    """

    values: Mapping[str, Any]
    origin: Mapping[str, str]
    notes: Notes = field(default_factory=Notes)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def given(self, name: str) -> bool:
        """Return whether the user set the option."""
        return name in self.origin

    def with_values(self, **values: Any) -> Options:
        """Return these options with other values for some of them."""
        return replace(self, values={**self.values, **values})

    def pick(self, kind: type) -> dict[str, Any]:
        """Return the options that are fields of a dataclass, by name; lists become tuples."""
        values = {name: self.values[name] for name in declared(kind) if name in self.values}
        return {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }

    def where(self, name: str) -> str:
        """Return the beginning of messages about option `name`: its origin and name."""
        return f"{self.origin.get(name, 'default')}: {name}"

    def error(self, name: str, message: str) -> OptionError:
        """Return the error for the value of option `name`."""
        return OptionError(f"{self.where(name)}: {message}")
