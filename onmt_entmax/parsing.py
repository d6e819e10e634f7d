"""Reading YAML and JSON that a stranger may have written: strict, and of bounded work."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from typing import Any, NoReturn

import yaml

from onmt_entmax.errors import UserError
from onmt_entmax.rules import shown

_DEEPEST = 50  # levels of nesting in YAML
_MOST_VALUES = 200_000  # of a YAML file, counting an alias as all that it stands for
_LONGEST_WORD = 10_000  # characters; reading a longer number would take a long time


class ParseError(UserError):
    """A text that is not YAML or JSON; the message names the line, but not the file."""


# The parser in C is ten times faster.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _UniqueKeys(_SafeLoader):
    """A safe loader that refuses duplicate keys; PyYAML silently keeps the last.

    It also reads 1e-3 as a number, for which YAML 1.1 needs 1.0e-3.
    """

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._checked: set[int] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Check for duplicate keys before PyYAML merges `<<`, which may repeat a key."""
        if id(node) not in self._checked:
            self._checked.add(id(node))
            self._check_keys(node)
        super().flatten_mapping(node)

    def _check_keys(self, node: yaml.MappingNode) -> None:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":  # `<<` may occur several times
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be a word or a number", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {shown(key)} is given twice", key_node.start_mark
                )
            seen.add(key)


_UniqueKeys.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def parse_yaml(text: str) -> Any:
    """Return the content of a YAML text.

    Raises:
        ParseError: it is not YAML, has a key twice, is nested too deeply, or its aliases stand for
            too many values.
    """
    try:
        _check_work(text)
        return yaml.load(text, Loader=_UniqueKeys)
    except yaml.MarkedYAMLError as error:
        # The parser in C sees the end of the text on a line of its own.
        line = min(error.problem_mark.line, text.count("\n")) + 1 if error.problem_mark else 1
        raise ParseError(f"line {line}: not valid YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ParseError(f"not valid YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:  # an alias may stand within what it names
        raise ParseError("not valid YAML: nested too deeply") from None
    except (ValueError, OverflowError) as error:  # an impossible date or number
        raise ParseError(f"not valid YAML: {error}") from None


def _check_work(text: str) -> None:
    """Refuse a text that would take a long time or much memory to read.

    Nested aliases stand for exponentially many values, and merging them copies these.

    Raises:
        yaml.MarkedYAMLError: names the place.
    """
    sizes: dict[str | None, int] = {}  # values that each anchor stands for
    open_: list[tuple[str | None, int]] = [(None, 0)]  # anchor and values of each level
    events: Any = yaml.parse(text, Loader=_UniqueKeys)
    for event in events:
        anchor, size, place = None, 0, event.start_mark
        if isinstance(event, (yaml.SequenceStartEvent, yaml.MappingStartEvent)):
            open_.append((event.anchor, 1))
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            anchor, size = open_.pop()
        elif isinstance(event, yaml.AliasEvent):
            size = sizes.get(event.anchor, 1)
        elif isinstance(event, yaml.ScalarEvent):
            anchor, size = event.anchor, 1
            if event.implicit[0] and len(event.value) > _LONGEST_WORD:
                raise yaml.MarkedYAMLError(None, None, "a word is too long", place)
        if anchor is not None:
            sizes[anchor] = size
        level_anchor, total = open_[-1]
        open_[-1] = (level_anchor, total + size)
        if len(open_) > _DEEPEST or total + size > _MOST_VALUES:
            problem = "nested too deeply" if len(open_) > _DEEPEST else "too many values"
            raise yaml.MarkedYAMLError(None, None, problem, place)


def parse_json(text: str) -> Any:
    """Return the content of a JSON text.

    Raises:
        ParseError: it is not JSON, has a key twice, or is nested too deeply.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except RecursionError:
        raise ParseError("not valid JSON: nested too deeply") from None
    except ParseError:
        raise
    except ValueError as error:
        raise ParseError(f"not valid JSON: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ParseError("not valid JSON: a key is given twice")
    return content


def _refuse(word: str) -> NoReturn:
    raise ParseError(f"not valid JSON: {word}")
