"""Read one value in the type of its option."""

import math
from contextlib import suppress
from typing import Any

from onmt_entmax.config import Option
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.files.parsing import ParseError, parse_yaml
from onmt_entmax.options.declared import is_mapping_as_text
from onmt_entmax.options.stock_values import VALUE_HINTS
from onmt_entmax.rules import Rule, shown

EMPTY = (None, "")
"""What YAML reads where a key has no value, and the empty text"""


class OptionError(UserError):
    """A configuration that cannot be used; one line names the file or flag, the key and the fix."""


def read_value(option: Option, value: Any, where: str) -> Any:
    """Return a value in the type of its option.

    Args:
        option: the option, whose rule decides the type and the range.
        value: what YAML reads, or the words after a flag.
        where: beginning of the error.

    Raises:
        OptionError: if the value does not fit.
    """
    if value in EMPTY and option.default in EMPTY:
        return option.default  # `train_from: ""` is the same as no such line
    if isinstance(value, dict) and is_mapping_as_text(option):
        value = str(value)  # OpenNMT-py reads it with `eval`, from a file or a flag
    if not option.many:
        return _read_single(option.rule, value, where)
    values = value if isinstance(value, list) else [value]
    if option.default and not values:
        raise OptionError(f"{where}: expected at least one value")
    return [_read_single(option.rule, single, where) for single in values]


def _read_single(rule: Rule, value: Any, where: str) -> Any:
    """Return one value in the type of its rule; see `read_value`."""
    converted = _converted(rule, value, where)
    has_null_byte = "\0" in str(converted)  # the system refuses names of files with one
    if rule.fits(converted) and not has_null_byte:
        return _as_float(converted) if rule.kind is float else converted
    raise OptionError(f"{where}: {rule}, not {shown(value)}{_hint(rule, value)}")


def _converted(rule: Rule, value: Any, where: str) -> Any:
    """Return a value in the type of a rule, or unchanged if it cannot be converted.

    A word after a flag is a text, which may stand for a number or be YAML. A value of a YAML file
    has a type, which may be close to that of the rule:

        rule          value           becomes
        bool, dict    "true", "{}"    True, {}, as YAML
        int, float    "3", "1e-3"     3, 0.001
        words, "on"   True            "on", which YAML 1.1 reads as true
        bool          1               True
        int           2e3             2000

    Args:
        rule: rule with the type.
        value: what YAML reads, or a word after a flag.
        where: beginning of the error.

    Raises:
        OptionError: if the text for a boolean or a mapping is not YAML.
    """
    if isinstance(value, str):
        value = _read_text(rule, value, where)
    if isinstance(value, bool) and "on" in rule.names:
        return "on" if value else "off"
    if rule.kind is bool and type(value) is int and value in (0, 1):
        return bool(value)
    if rule.kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _read_text(rule: Rule, text: str, where: str) -> Any:
    """Return the value that a text stands for in the type of a rule; see `_converted`."""
    if rule.kind in (bool, dict):
        try:
            return parse_yaml(text)
        except ParseError as error:
            raise OptionError(f"{where}: {error}") from None
    return _as_number(text) if rule.kind in (int, float) else text


def _as_number(text: str) -> int | float | str:
    """Return the number that a text is, or the text; large whole numbers stay exact."""
    try:
        return int(text)
    except ValueError:
        with suppress(ValueError):
            return float(text)
    return text


def _as_float(value: int | float) -> float:
    """Return a number as a float; infinity if it is too large for one, as for the text `1e999`."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _hint(rule: Rule, value: Any) -> str:
    """Return what to write instead of a value that does not fit, or an empty string."""
    if not isinstance(value, str):
        # YAML reads the folder of `save_model: 2024` as a number.
        return "; put it between quotes" if rule.kind is str and value is not None else ""
    if value in VALUE_HINTS:
        return f"; {VALUE_HINTS[value]}"
    if rule.kind is dict:
        return "; name corpora under data, with path_src and path_tgt of each"
    return nearest(value, rule.names)
