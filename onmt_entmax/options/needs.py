"""Options that need others: without these, nothing reads them.

`Option.needs` names the conditions, of which one must hold, with " or " between them:

    tgt                 the option has a value, which is not one of `_OFF`
    search: exact       the option has this value
    data: valid         the option is a mapping with this key
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from onmt_entmax.config import Option
from onmt_entmax.options.result import Options
from onmt_entmax.options.stock import NOTED_IF_UNREAD

# Values by which an option is off: no penalty, and attention that is not sparse.
_OFF = ("none", "softmax")


class Condition(NamedTuple):
    """An option that another one needs."""

    name: str
    value: str
    """The value, or the key of a mapping; empty: any value but those of `_OFF`"""

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Tell whether the values of all options meet the condition."""
        value = values[self.name]
        if isinstance(value, dict):
            return self.value in value
        if self.value:
            return bool(value == self.value)
        return bool(value) and value not in _OFF


def conditions_of(needs: str) -> list[Condition]:
    """Return the conditions that `Option.needs` names."""
    parts = (text.partition(": ") for text in needs.split(" or "))
    return [Condition(name, value) for name, _, value in parts]


def without_unread(options: Mapping[str, Option], read: Options) -> Options:
    """Return the options with the defaults of those that lack what they need; note these.

    The order of the options counts: one that has gone back to its default no longer serves those
    after it.

    Args:
        options: those of the command.
        read: their values.

    Raises:
        OptionError: the user set an option that nothing reads, although OpenNMT-py would read it.
    """
    values = dict(read.values)
    for name, option in options.items():
        if not _is_unread(option, values[name], values):
            continue
        if name not in NOTED_IF_UNREAD:
            raise read.error(name, f"is only read with {option.needs}")
        read.notes.ignored.append(f"{name} (needs {option.needs})")
        values[name] = option.default
    return replace(read, values=values)


def _is_unread(option: Option, value: Any, values: Mapping[str, Any]) -> bool:
    """Tell whether a value that is not the default lacks the other options that it needs."""
    if not option.needs or value == option.default:
        return False
    return not any(condition.holds(values) for condition in conditions_of(option.needs))
