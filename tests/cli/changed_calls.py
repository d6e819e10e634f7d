"""Calls of a command in which some options differ from a usual call."""

import shlex
from collections.abc import Mapping


def changed_call(usual: Mapping[str, str], options: str) -> list[str]:
    """Return the arguments of a call.

    Args:
        usual: the values of each option of a call without mistakes, as a shell has them.
        options: options as a shell has them, which replace those of the same name, or are added.
    """
    words = shlex.split(options)
    unchanged = [
        word
        for name, values in usual.items()
        if name not in words
        for word in (name, *shlex.split(values))
    ]
    return [*unchanged, *words]
