"""Reading YAML and JSON strictly: no key twice, no code, bounded work."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from onmt_entmax.errors import UserError
from onmt_entmax.rules import shown


class ParseError(UserError):
    """A text that is not YAML or JSON; the message names the line, but not the file."""


# The parser in C is ten times faster.
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass
class Layout:
    """The places of the keys of a YAML text that people write.

    Attributes:
        lines: line of each top-level key.
        repeats: keys that are given again with an equal value, with both lines.
    """

    lines: dict[Any, int] = field(default_factory=dict)
    repeats: list[str] = field(default_factory=list)


class _UniqueKeys(_SafeLoader):
    """A safe loader that refuses duplicate keys, of which PyYAML silently keeps the last."""

    layout: Layout | None = None  # if there is one, a key may repeat with an equal value

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Check for duplicate keys before PyYAML merges `<<`, which may repeat a key."""
        first: dict[Any, Any] = {}
        for key, value in node.value:
            word = key.tag, key.value if isinstance(key, yaml.ScalarNode) else id(key)
            if word in first and not key.tag.endswith(":merge"):  # `<<` may occur several times
                self._check_repeat(key, value, *first[word])
            first.setdefault(word, (key, value))
        super().flatten_mapping(node)

    def _check_repeat(self, key: Any, value: Any, first_key: Any, first_value: Any) -> None:
        """Note a key that repeats with an equal value, if there is a layout.

        Raises:
            yaml.MarkedYAMLError: there is none, or the values differ.
        """
        line, problem = first_key.start_mark.line + 1, f"the key {shown(key.value)} is given twice"
        if self.layout is None:
            raise yaml.MarkedYAMLError(None, None, problem, key.start_mark)
        # As texts, since 1 == True.
        values = [repr(self.construct_object(each, deep=True)) for each in (first_value, value)]
        if values[0] != values[1]:
            problem += f", and its value differs from that in line {line}"
            raise yaml.MarkedYAMLError(None, None, problem, key.start_mark)
        self.layout.repeats.append(f"{key.value} (lines {line} and {key.start_mark.line + 1})")


# YAML 1.1 reads 1e-3 as text, and wants 1.0e-3.
_UniqueKeys.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def parse_yaml(text: str, layout: Layout | None = None) -> Any:
    """Return the content of a YAML text.

    Args:
        text: in YAML 1.1.
        layout: receives the places of keys. A key may then repeat with an equal value.

    Raises:
        ParseError: it is not YAML, has a key twice, is nested too deeply, or is too large.
    """
    try:
        _check_size(text)
        loader = _UniqueKeys(text)
        loader.layout = layout
        try:
            root = loader.get_single_node()
            content = None if root is None else loader.construct_document(root)
        finally:
            loader.dispose()
        if layout is not None and isinstance(root, yaml.MappingNode):
            for key, _ in root.value:
                layout.lines.setdefault(
                    key.value if isinstance(key.value, str) else None, key.start_mark.line + 1
                )
        return content
    except yaml.MarkedYAMLError as error:
        # The parser in C sees the end of the text on a line of its own.
        line = min(error.problem_mark.line, text.count("\n")) + 1 if error.problem_mark else 1
        raise ParseError(f"line {line}: not valid YAML: {error.problem}") from None
    except Exception as error:  # PyYAML's of an impossible date, a tag, an alias within itself
        raise ParseError(f"not valid YAML: {''.join(str(error).splitlines()[:1])}") from None


def _check_size(text: str) -> None:
    """Refuse a text that would take a long time or much memory to read.

    Nested aliases stand for exponentially many values, and merging them copies these.

    Raises:
        yaml.YAMLError: says what is too much, and where.
    """
    if len(text) > 2**20:
        raise yaml.YAMLError("larger than 1,048,576 characters")
    sizes: dict[str | None, int] = {}  # values that each anchor stands for
    levels: list[tuple[str | None, int]] = [(None, 0)]  # anchor and values of each open level
    events: Any = yaml.parse(text, Loader=_UniqueKeys)
    for event in events:
        anchor, size = getattr(event, "anchor", None), 1
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, size = levels.pop()
        elif isinstance(event, yaml.AliasEvent):
            size = sizes.get(anchor, 1)
        sizes[anchor] = size
        if isinstance(event, yaml.CollectionStartEvent):
            levels.append((anchor, 0))
        levels[-1] = (levels[-1][0], levels[-1][1] + size)
        # The parser in C overflows its stack at some more levels.
        if len(levels) > 50 or levels[-1][1] > 200_000:
            raise yaml.MarkedYAMLError(
                None, None, "nested too deeply or too many values", event.start_mark
            )


def parse_json(text: str) -> Any:
    """Return the content of a JSON text.

    Raises:
        ParseError: it is not JSON, has a key twice, or is nested too deeply.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(content := dict(pairs)) < len(pairs):
            raise ValueError("a key is given twice")
        return content

    def refuse(word: str) -> None:
        raise ValueError(word)  # NaN and infinities

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"not valid JSON: {error}") from None
