"""The options of a command after they were read: values and where they come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onmt_entmax.config import declared
from onmt_entmax.options.notes import Notes
from onmt_entmax.options.values import OptionError

COMMAND_LINE = "command line"
"""Where flags come from, in `Options.origin` and in messages"""


@dataclass(frozen=True)
class Options:
    """Values of all options, defaults included.

    The values stay as they are. Functions that make something else of them may add to the notes.

    Attributes:
        values: values by OpenNMT-py's names.
        origin: the source of each given value: the name of a file, or `COMMAND_LINE`.
        notes: notes on the given options, for the user.
    """

    values: Mapping[str, Any]
    origin: Mapping[str, str]
    notes: Notes = field(default_factory=Notes)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def given(self, name: str) -> bool:
        """Return whether the user set the option."""
        return name in self.origin

    def pick(self, kind: type) -> dict[str, Any]:
        """Return the options that are fields of a dataclass, by name; lists become tuples."""
        values = {name: self.values[name] for name in declared(kind) if name in self.values}
        return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}

    def where(self, name: str) -> str:
        """Return the beginning of messages about option `name`: its origin and name."""
        return f"{self.origin.get(name, 'default')}: {name}"

    def error(self, name: str, message: str) -> OptionError:
        """Return the error for the value of option `name`."""
        return OptionError(f"{self.where(name)}: {message}")
