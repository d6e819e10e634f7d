"""The options of a command that were read: their values and where each was set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from onmt_entmax.config import declared
from onmt_entmax.options.notes import Notes
from onmt_entmax.options.values import OptionError

COMMAND_LINE = "command line"
"""Where flags come from, in `Options.origin` and in messages"""
Config = TypeVar("Config")


@dataclass(frozen=True)
class Options:
    """Values of all options, defaults included.

    The values do not change: `with_values` returns other options. The notes are shared, so that the
    functions that replace values, one after the other, add to the same notes.

    Attributes:
        values: values by the names of the options.
        origin: where the user set each option: the name of a file, or `COMMAND_LINE`; options that
            the user did not set are absent.
        notes: notes for the user on the options that were set.
    """

    values: Mapping[str, Any]
    origin: Mapping[str, str]
    notes: Notes = field(default_factory=Notes)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def is_set(self, name: str) -> bool:
        """Return whether the user set the option."""
        return name in self.origin

    def with_values(self, **values: Any) -> Options:
        """Return these options with other values for some of them."""
        return replace(self, values={**self.values, **values})

    def make(self, kind: Callable[..., Config], **others: Any) -> Config:
        """Return a configuration whose fields have the values of these options.

        Lists become tuples, since a configuration does not change.

        Args:
            kind: the class of the configuration, a dataclass whose fields declare options.
            others: values of the fields that are no options. For a field that is an option, the
                value here replaces that of the option.
        """
        values = {name: self.values[name] for name in declared(kind) if name in self.values}
        fields = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        return kind(**fields | others)

    def where(self, name: str) -> str:
        """Return the beginning of messages about option `name`: its origin and name."""
        return f"{self.origin.get(name, 'default')}: {name}"

    def error(self, name: str, message: str) -> OptionError:
        """Return the error for the value of option `name`."""
        return OptionError(f"{self.where(name)}: {message}")
