"""How options are declared: as fields of dataclasses, with default, range and help.

    @dataclass(frozen=True)
    class SomeConfig:
        size: int = option(500, SIZE, "Size of the states.", "Model")

`declared(SomeConfig)` returns these options, for help and for the reading of files and flags. Of a
dataclass that is a `Checked`, values follow their rules wherever they come from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from onmt_entmax.errors import UserError
from onmt_entmax.rules import Rule, shown, whole

# Bounds that no use comes near are there because time or memory would run out beyond them.
COUNT = whole(0, 10**12)  # of sentences, updates and the like; 0 where none is meant
LIMIT = whole(1, 10**12)
FEW = whole(1, 10_000)
SIZE = whole(1, 1_000_000)
TEXT = Rule(str)
PATH = TEXT  # whether the file exists is checked where it is read
RUN = "Run (OpenNMT-py's options from here on)"
"""Heading of the options that a run of OpenNMT-py has, too"""


@dataclass(frozen=True)
class Option:
    """An option of `train` or `translate`.

    Attributes:
        default: the value if it is not given; of an option that is a list, a list or tuple.
        rule: what a value may be; of a list, each.
        help: one line.
        topic: its heading in the short help; others are listed by `--help-all` alone.
        needs: options or values, between "or", without which it does nothing, such as `search:
            exact or verify`.
        required: whether it must be given.
    """

    default: Any
    rule: Rule
    help: str = ""
    topic: str = ""
    needs: str = ""
    required: bool = False

    @property
    def many(self) -> bool:
        """Whether the value is a list."""
        return isinstance(self.default, (list, tuple))


def option(*declaration: Any, **more: Any) -> Any:
    """Return a field of a dataclass that is also an option; the arguments are those of `Option`."""
    declared_option = Option(*declaration, **more)
    metadata = {"option": declared_option}
    if declared_option.required:
        return field(metadata=metadata, kw_only=True)
    return field(metadata=metadata, default=declared_option.default)


def declared(*kinds: Any) -> dict[str, Option]:
    """Return the options among the fields of dataclasses, by name."""
    return {
        declaration.name: declaration.metadata["option"]
        for kind in kinds
        for declaration in fields(kind)
        if declaration.metadata
    }


class ConfigError(UserError):
    """An invalid configuration.

    Attributes:
        key: the field, or the option that it comes from.
        reason: the message without the key.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


class Checked:
    """Base of a dataclass whose options follow their rules and fit each other.

    Raises:
        ConfigError: names the first value that breaks its rule or does not fit another.
    """

    def __post_init__(self) -> None:
        for name, declared_option in declared(type(self)).items():
            value, rule = getattr(self, name), declared_option.rule
            values = value if declared_option.many else [value]
            if not (isinstance(values, (list, tuple)) and all(map(rule.fits, values))):
                expected = f"must be a list; each value {rule}" if declared_option.many else rule
                raise ConfigError(name, f"{expected}, not {shown(value)}")
        for name, reason in self.misfits():
            raise ConfigError(name, reason)

    def misfits(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each value that does not fit others, and why."""
        yield from ()
