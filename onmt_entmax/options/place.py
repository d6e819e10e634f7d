"""Read the options of one place, which is the command line or a YAML file.

An option that this package cannot follow exactly is refused. If a value has another name here, if
something close is done instead, or if the option has no effect, a note says so.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from onmt_entmax.config import Option
from onmt_entmax.files.parsing import Layout
from onmt_entmax.options.groups import NOT_SET, SIDES_OF
from onmt_entmax.options.names import find_option
from onmt_entmax.options.notes import Notes
from onmt_entmax.options.stock import IGNORED, NEAREST, REFUSED
from onmt_entmax.options.stock_values import EQUAL_VALUES
from onmt_entmax.options.values import EMPTY, OptionError, read_value


def read_place(
    options: Mapping[str, Option],
    content: Mapping[str, Any],
    where: str,
    notes: Notes,
    layout: Layout | None = None,
) -> dict[str, Any]:
    """Return the options of one place, read and checked.

    Args:
        options: options of the command.
        content: values by name of the option.
        where: name of the place.
        notes: receives what is ignored or replaced.
        layout: places of keys in the YAML file, if the place is one.

    Raises:
        OptionError: names the first option that is wrong.
    """
    return _PlaceReader(options, where, notes, layout).read(content)


class _PlaceReader:
    """Reads the options of one place; see `read_place` for the arguments."""

    def __init__(
        self, options: Mapping[str, Option], where: str, notes: Notes, layout: Layout | None
    ) -> None:
        self._options = options
        self._where = where
        self._notes = notes
        self._in_file = layout is not None
        self._lines = {} if layout is None else layout.lines

    def read(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options, read and checked.

        Raises:
            OptionError: names the first option that is wrong.
        """
        values: dict[str, Any] = {}
        for name, value in content.items():
            option = find_option(name, self._options, f"{self._where}: ", in_file=self._in_file)
            if option is None or name in IGNORED:
                has_value = value not in EMPTY if option is None else value != option.default
                if has_value:
                    self._notes.ignored.append(name)
            else:
                values |= self._read_option(name, option, value)
        self._warn_of_sides(values)
        return values

    def _read_option(self, name: str, option: Option, value: Any) -> dict[str, Any]:
        """Return an option as `{name: value}`; `{}` if something close takes its place.

        Args:
            name: name of the option.
            option: declaration of the option.
            value: what YAML reads, or the words after a flag.

        Raises:
            OptionError: the option is not supported, or the value does not fit.
        """
        if self._in_file and not option.required and _is_empty(option, value):
            # A key without a value has the default.
            if option.default not in (None, ""):
                self._notes.ignored.append(f"{name} (empty)")
            return {name: option.default}
        if isinstance(value, str) and (name, value) in EQUAL_VALUES:
            # The value has another name here.
            equal = EQUAL_VALUES[name, value]
            self._notes.replaced.append(f"{name} {value} as {equal}")
            return {name: equal}
        if name in REFUSED and not _is_default(option, value):
            # What the option asks for is not supported.
            raise OptionError(f"{self._where}: {name}: not supported: {REFUSED[name]}")
        if name in NEAREST and not _is_default(option, value):
            # Something close is done, whatever the value.
            self._notes.replaced.append(f"{name} as {NEAREST[name]}")
            return {}
        return {name: read_value(option, value, f"{self._where}: {name}")}

    def _warn_of_sides(self, values: Mapping[str, Any]) -> None:
        """Warn of options of one side, such as `enc_layers`, that the option of both replaces.

        Args:
            values: values of the options that were read.
        """
        line_of = {name: f" (line {number})" for name, number in self._lines.items()}
        for both, sides in SIDES_OF.items():
            size = values.get(both, NOT_SET)
            if size == NOT_SET:
                continue
            for side in sides:
                if values.get(side, size) != size:
                    self._notes.warnings.append(
                        f"{self._where}: {both}: {size}{line_of.get(both, '')} replaces "
                        f"{side}: {values[side]}{line_of.get(side, '')}; delete one"
                    )


def _is_empty(option: Option, value: Any) -> bool:
    """Return whether a key of a file has no value; options for text may have the empty text."""
    return value is None or (value == "" and option.rule.kind is not str)


def _is_default(option: Option, value: Any) -> bool:
    """Return whether a value, of whatever type, is the default of its option."""
    with suppress(OptionError):
        return bool(read_value(option, value, "") == option.default)
    return False
