"""What was read: the values of all options, where they come from, and notes for the user."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onmt_entmax.config import declared
from onmt_entmax.options.values import OptionError

COMMAND_LINE = "command line"
"""Where flags come from, in `Options.origin` and in messages"""


@dataclass
class Notes:
    """The given options that are not obeyed to the letter.

    Whoever reads options adds to these lists; the command prints them once all options are read.

    Attributes:
        ignored: options without effect.
        replaced: `X as Y` for options that are read as something else.
        repeated: keys that are given twice with the same value.
        warnings: sentences about options that others overrule.
    """

    ignored: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Return at most one line for each kind of note, but none for warnings."""
        kinds = {
            "read as OpenNMT-py does not": self.replaced,
            "without effect here": self.ignored,
            "given twice, with equal values": self.repeated,
        }
        return [f"{kind}: {', '.join(parts)}" for kind, parts in kinds.items() if parts]


@dataclass(frozen=True)
class Options:
    """Values of all options, defaults included.

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
        """Whether the user set the option."""
        return name in self.origin

    def pick(self, kind: type) -> dict[str, Any]:
        """Return the options that are fields of a dataclass; lists as tuples."""
        values = {name: self.values[name] for name in declared(kind) if name in self.values}
        return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}

    def where(self, name: str) -> str:
        """Return the beginning of messages about option `name`: its origin and name."""
        return f"{self.origin.get(name, 'default')}: {name}"

    def error(self, name: str, message: str) -> OptionError:
        """Return the error for the value of option `name`."""
        return OptionError(f"{self.where(name)}: {message}")
