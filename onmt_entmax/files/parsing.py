"""Parse YAML and JSON of strangers: duplicate keys are refused, no code runs, work is bounded.

Model folders and configurations may come from strangers. Errors name the line; callers, who know
the file, put its name before it. A short YAML text may stand for many values, see `yaml_size`;
JSON has no aliases, so a text has no more values than characters.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from onmt_entmax.errors import UserError
from onmt_entmax.files.yaml_size import SafeLoader, check_size
from onmt_entmax.rules import shown


class ParseError(UserError):
    """A text that is not YAML or JSON; the message names the line, but not the file."""


@dataclass
class Layout:
    """The places of the keys of a YAML text that people write.

    Attributes:
        lines: line of each top-level key.
        repeats: keys that are given again with an equal value, with both lines.
    """

    lines: dict[Any, int] = field(default_factory=dict)
    repeats: list[str] = field(default_factory=list)


class _Entry(NamedTuple):
    """A key of a mapping in a YAML text, and its value."""

    key: yaml.Node
    value: yaml.Node


class _UniqueKeys(SafeLoader):
    """A safe loader that refuses duplicate keys, of which PyYAML silently keeps the last."""

    def __init__(self, text: str, layout: Layout | None = None) -> None:
        """Load a text; if there is a layout, a key may repeat with an equal value."""
        super().__init__(text)
        self.layout = layout
        self._checked: set[yaml.MappingNode] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Compare the keys of a mapping before PyYAML replaces `<<` by what it merges.

        PyYAML calls this between parsing a text into nodes and making values of them. Afterwards,
        the node also has the merged keys, which may repeat its own without being duplicates. A node
        that several mappings merge comes here several times, and is checked at the first.
        """
        if node not in self._checked:
            self._checked.add(node)
            self._check_keys(node)
        super().flatten_mapping(node)

    def _check_keys(self, node: yaml.MappingNode) -> None:
        """Compare keys as the values that they become, as 1 and 0x1 are one key."""
        first: dict[Any, _Entry] = {}  # by the value of the key
        for key, value in node.value:
            if key.tag.endswith(":merge"):  # `<<` may occur several times
                continue
            # A key that is a list or a mapping is compared with nothing: Python refuses it later.
            is_scalar = isinstance(key, yaml.ScalarNode)
            identity = self.construct_object(key) if is_scalar else id(key)
            if identity in first:
                self._check_repeat(first[identity], _Entry(key, value))
            else:
                first[identity] = _Entry(key, value)

    def _check_repeat(self, first: _Entry, entry: _Entry) -> None:
        """Note a key that repeats with an equal value, if there is a layout.

        Raises:
            yaml.MarkedYAMLError: there is none, or the values differ.
        """
        key = entry.key
        line, first_line = key.start_mark.line + 1, first.key.start_mark.line + 1
        problem = f"the key {shown(key.value)} is given twice"
        if self.layout is None:
            raise yaml.MarkedYAMLError(None, None, problem, key.start_mark)
        # Compared as texts, since 1 == True.
        first_text, text = (
            repr(self.construct_object(node, deep=True)) for node in (first.value, entry.value)
        )
        if text != first_text:
            problem += f", and its value differs from that in line {first_line}"
            raise yaml.MarkedYAMLError(None, None, problem, key.start_mark)
        self.layout.repeats.append(f"{key.value} (lines {first_line} and {line})")


# In YAML 1.1, 1.0e-3 is a number and 1e-3 is a text; here both are numbers.
_UniqueKeys.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def parse_yaml(text: str, layout: Layout | None = None) -> Any:
    """Return the content of a YAML text.

    Args:
        text: text in YAML 1.1.
        layout: receives the places of keys. A key may then repeat with an equal value.

    Raises:
        ParseError: if it is not YAML, has a key twice, is nested too deeply, or is too large.
    """
    try:
        check_size(text)
        loader = _UniqueKeys(text, layout)
        try:
            root = loader.get_single_node()
            content = None if root is None else loader.construct_document(root)
        finally:
            loader.dispose()
        if layout is not None and isinstance(root, yaml.MappingNode):
            _note_lines(root, layout)
        return content
    except yaml.MarkedYAMLError as error:
        # The parser in C sees the end of the text on a line of its own.
        line = min(error.problem_mark.line, text.count("\n")) + 1 if error.problem_mark else 1
        raise ParseError(f"line {line}: not valid YAML: {error.problem}") from None
    except Exception as error:
        # PyYAML lets the errors of its conversions pass: KeyError for `!!bool x`, AttributeError
        # for `!!timestamp x`, ValueError for an impossible date. The user reads one line for each.
        raise ParseError(f"not valid YAML: {''.join(str(error).splitlines()[:1])}") from None


def _note_lines(root: yaml.MappingNode, layout: Layout) -> None:
    """Note the first line of each top-level key; None stands for keys that are no text."""
    for key, _ in root.value:
        name = key.value if isinstance(key.value, str) else None
        layout.lines.setdefault(name, key.start_mark.line + 1)


def parse_json(text: str) -> Any:
    """Return the content of a JSON text.

    Raises:
        ParseError: if it is not JSON, has a key twice, or is nested too deeply.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            raise ValueError("a key is given twice")
        return content

    def refuse(word: str) -> None:
        raise ValueError(word)  # NaN and infinities

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"not valid JSON: {error}") from None
