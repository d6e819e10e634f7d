"""Calls of a command in which some options differ from a usual call."""

import shlex
from collections.abc import Mapping


def changed_call(usual: Mapping[str, str], options: str) -> list[str]:
    """Return the arguments of a call with some options of its own.

    `changed_call({"--train": "a b", "--out": "c"}, "--out 'd e' --copy 2")` returns
    `["--train", "a", "b", "--out", "d e", "--copy", "2"]`.

    Args:
        usual: the values of each option of a call without mistakes, between spaces.
        options: options with their values, quoted as for a shell; they replace options of the same
            name.
    """
    words = shlex.split(options)
    unchanged = [
        word
        for name, values in usual.items()
        if name not in words
        for word in (name, *shlex.split(values))
    ]
    return [*unchanged, *words]
