"""Refuse or note options without effect: those whose condition `Option.needs` does not hold."""

from collections.abc import Mapping

from onmt_entmax.config import Option
from onmt_entmax.options.given import Options
from onmt_entmax.options.stock_values import NOTED_IF_UNREAD


def without_unread(options: Mapping[str, Option], read: Options) -> Options:
    """Return the options with the defaults of those whose condition does not hold; note these.

    Options are checked in the order of the table. An option that is set back to its default is off
    for the later options that need it.

    Args:
        options: options of the command.
        read: values of these options.

    Raises:
        OptionError: if nothing reads an option that the user set, and OpenNMT-py would.
    """
    values = dict(read.values)
    for name, option in options.items():
        condition = option.needs
        if condition is None or values[name] == option.default or condition.holds(values):
            continue
        if name not in NOTED_IF_UNREAD:
            raise read.error(name, f"is only read with {condition}")
        read.notes.ignored.append(f"{name} (needs {condition})")
        values[name] = option.default
    return read.with_values(**values)
