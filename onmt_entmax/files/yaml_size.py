"""The size of a YAML text, which is checked before anything is constructed from it.

Nested aliases stand for exponentially many values, and merging them copies these:

    a: &a [1, 2]
    b: &b [*a, *a, *a]
    c: [*b, *b, *b]        a stands for 2 numbers, b for 6, c for 18

So an alias counts as often as what it stands for. The parser's events are enough to count: no value
is made.
"""

from dataclasses import dataclass
from typing import Any

import yaml

SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""PyYAML's safe loader; the one in C, which some builds lack, is ten times faster"""
# Far more than a configuration needs.
_MOST_CHARACTERS = 1 << 20
_MOST_VALUES = 200_000
_MOST_LEVELS = 50  # the parser in C overflows its stack at some more


@dataclass
class _Level:
    """A collection of a YAML text that has begun and not ended.

    Attributes:
        anchor: its anchor, if it has one.
        values: how many values it stands for so far: itself, and those below it.
    """

    anchor: str | None = None
    values: int = 1


def check_size(text: str) -> None:
    """Refuse a text that would take a long time or much memory to read.

    Raises:
        yaml.YAMLError: if the text is too long, has too many values, or nests too many levels.
    """
    if len(text) > _MOST_CHARACTERS:
        raise yaml.YAMLError(f"larger than {_MOST_CHARACTERS:,} characters")
    anchored: dict[str | None, int] = {}  # how many values each anchor stands for
    levels = [_Level()]  # the whole text, and the collections that have begun and not ended
    events: Any = yaml.parse(text, Loader=SafeLoader)
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            anchored[event.anchor] = 1  # for an alias inside the collection, to itself
            levels.append(_Level(event.anchor))
        elif isinstance(event, yaml.CollectionEndEvent):
            ended = levels.pop()
            anchored[ended.anchor] = ended.values
            levels[-1].values += ended.values
        elif isinstance(event, yaml.AliasEvent):
            levels[-1].values += anchored.get(event.anchor, 1)
        elif isinstance(event, yaml.ScalarEvent):
            anchored[event.anchor] = 1
            levels[-1].values += 1
        if len(levels) > _MOST_LEVELS or levels[-1].values > _MOST_VALUES:
            raise yaml.MarkedYAMLError(
                None, None, "nested too deeply or too many values", event.start_mark
            )
