"""The text that a command prints for `-h`, `--help-all` and `--schema`."""

import json
import sys
import textwrap
from collections.abc import Mapping, Sequence

from onmt_entmax.config import Option
from onmt_entmax.options.json_schema import schema
from onmt_entmax.options.stock import IGNORED, NEAREST, REFUSED
from onmt_entmax.options.values import OptionError

_INDENT = 30  # column at which the text of an option begins
_WIDTH = 68  # characters of a line of this text


def requested_help(
    options: Mapping[str, Option], topics: Sequence[str], usage: str, arguments: Sequence[str]
) -> str | None:
    """Return the help or the schema that a command line asks for; None if it asks for neither.

    Args:
        options: options of the command.
        topics: headings of the short help, in order; `--help-all` adds the others.
        usage: what follows the name of the program in the first line, and what the command does.
        arguments: `-h` asks for the help, `--help-all` for all of it, `--schema` for a JSON Schema
            of the YAML file.

    Raises:
        OptionError: if `--schema` is not the only argument.
    """
    flags = {word.lstrip("-").replace("_", "-") for word in arguments if word.startswith("-")}
    if "schema" in flags:
        if len(arguments) > 1:
            raise OptionError(
                "--schema: stands alone, and prints; write to a file with --schema > FILE"
            )
        return json.dumps(schema(options), indent=2)
    if flags.isdisjoint({"h", "help", "help-all"}):
        return None
    return _help(options, topics, usage, everything="help-all" in flags)


def _help(
    options: Mapping[str, Option], topics: Sequence[str], usage: str, *, everything: bool
) -> str:
    """Return the help.

    Args:
        options: options of the command.
        topics: headings of the short help, in order.
        usage: see `requested_help`.
        everything: whether options of other topics are listed, too.
    """
    lines = [
        f"usage: {sys.argv[0]} {usage}",
        "Options may also stand in the YAML file, without the dash; the command line wins.",
        "--help-all lists all options; --schema prints a JSON Schema for editors.",
    ]
    others = [option.topic for option in options.values()] if everything else []
    for title in dict.fromkeys([*topics, *others]):  # each once
        entries = [
            line
            for name, option in options.items()
            if option.topic == title and _can_change(name, option)
            for line in _entry(name, option)
        ]
        if entries:
            lines += ["", f"{title}:", *entries]
    return "\n".join(lines)


def _can_change(name: str, option: Option) -> bool:
    """Return whether the option can have another value than its default, with an effect."""
    only_one = len(option.rule.names) == 1 or option.rule.low == option.rule.high
    return not only_one and name not in {*REFUSED, *IGNORED, *NEAREST}


def _entry(name: str, option: Option) -> list[str]:
    """Return the lines of an option in the help: its name, what it does and its default."""
    text = option.help
    rule = option.rule
    if rule.kind is str and rule.names:
        text += f" {{{', '.join(rule.names)}}}"
    default = " ".join(map(str, option.default)) if option.many else option.default
    if default not in (None, "") and rule.kind is not bool:
        text += f" ({default})"
    first, *others = textwrap.wrap(text, _WIDTH, break_on_hyphens=False)
    return [f"  -{name}".ljust(_INDENT) + first, *(" " * _INDENT + line for line in others)]
