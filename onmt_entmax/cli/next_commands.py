"""How `prepare` writes the commands that it proposes next."""

from collections.abc import Sequence

from onmt_entmax.errors import printable


def next_lines(commands: Sequence[str]) -> list[str]:
    """Return commands as lines for a shell: each after `onmt-entmax`, and safe for a terminal."""
    return [printable(f"onmt-entmax {command}") for command in commands]


def next_text(lines: Sequence[str]) -> str:
    """Return the text that `prepare` prints at its end: `next:`, and the lines below it."""
    return "\n  ".join(["next:", *lines])
