"""Declare options as fields of dataclasses, with default, range and help.

    @dataclass(frozen=True)
    class SomeConfig:
        size: int = option(500, SIZE, help="Size of the states.", topic=MODEL)

`declared(SomeConfig)` returns these options, for the help and for reading files and flags. A
dataclass that inherits from `Checked` checks its values whenever one is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any

from onmt_entmax.config.conditions import Condition
from onmt_entmax.errors import UserError
from onmt_entmax.rules import Rule, shown, whole

# Upper bounds are far above any use. They refuse numbers for which time or memory would run out.
COUNT = whole(0, 10**12)  # of sentences, updates and the like; 0 stands for none
LIMIT = whole(1, 10**12)
FEW = whole(1, 10_000)
SIZE = whole(1, 1_000_000)
TEXT = Rule(str)
PATH = TEXT  # whether the file exists is checked where it is read


@dataclass(frozen=True)
class Option:
    """An option of `train` or `translate`.

    Attributes:
        default: the value if the user sets none; a list or tuple if the option is a list.
        rule: what a value may be; for a list, what each of its values may be.
        help: what the option does, in one or two sentences.
        topic: heading in the short help, see `topics.py`; empty: only `--help-all` lists it.
        needs: the condition on other options under which the option is read; None: it always is.
        required: whether it must be given.
    """

    default: Any
    rule: Rule
    _: KW_ONLY
    help: str = ""
    topic: str = ""
    needs: Condition | None = None
    required: bool = False

    @property
    def many(self) -> bool:
        """Whether the value is a list."""
        return isinstance(self.default, (list, tuple))


def option(
    default: Any,
    rule: Rule,
    help: str = "",
    topic: str = "",
    needs: Condition | None = None,
    required: bool = False,
) -> Any:
    """Return a field of a dataclass that is also an option; the arguments are those of `Option`."""
    metadata = {
        "option": Option(default, rule, help=help, topic=topic, needs=needs, required=required)
    }
    if required:
        return field(metadata=metadata, kw_only=True)
    return field(metadata=metadata, default=default)


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
    """Base of a dataclass that checks its options: each follows its rule, and all fit each other.

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
