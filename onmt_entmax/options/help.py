"""The help of a command, and the JSON Schema of its YAML file."""

import json
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from onmt_entmax.config import CorpusConfig, Option, declared
from onmt_entmax.options.declared import is_mapping_as_text, stock_names
from onmt_entmax.options.stock import EQUAL, IGNORED, NEAREST, REFUSED, RENAMED
from onmt_entmax.options.values import OptionError


def described(
    options: Mapping[str, Option], topics: Sequence[str], usage: str, arguments: Sequence[str]
) -> str | None:
    """Return the text that a command line asks for, or None.

    Args:
        options: those of the command.
        topics: headings of the short help, in order; `--help-all` adds the others.
        usage: the line after the name of the program, and what the command does.
        arguments: `-h` asks for the help, `--help-all` for all of it, `--schema` for a JSON Schema
            of the YAML file.

    Raises:
        OptionError: another argument stands beside `--schema`.
    """
    words = {word.lstrip("-").replace("_", "-") for word in arguments if word.startswith("-")}
    if "schema" in words:
        if len(arguments) > 1:
            raise OptionError(
                "--schema: stands alone, and prints; write to a file with --schema > FILE"
            )
        return json.dumps(schema(options), indent=2)
    if not words & {"h", "help", "help-all"}:
        return None
    lines = [
        f"usage: {sys.argv[0]} {usage}",
        "Options may also stand in the YAML file, without the dash; the command line wins.",
        "--help-all lists all options; --schema prints a JSON Schema for editors.",
    ]
    titles = [*topics, *(option.topic for option in options.values())]
    for title in dict.fromkeys(titles if "help-all" in words else topics):
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
    """Whether an option has a value besides its default that is obeyed."""
    only_one = len(option.rule.names) == 1 or option.rule.low == option.rule.high
    return not only_one and name not in {*REFUSED, *IGNORED, *NEAREST}


def _entry(name: str, option: Option) -> list[str]:
    """Return the lines of an option in the help: its name, what it does and its default."""
    text, rule = option.help, option.rule
    if rule.kind is str and rule.names:
        text += f" {{{', '.join(rule.names)}}}"
    default = " ".join(map(str, option.default)) if option.many else option.default
    if default not in (None, "") and rule.kind is not bool:
        text += f" ({default})"
    first, *others = textwrap.wrap(text, 68, break_on_hyphens=False)
    return [f"  -{name}".ljust(30) + first, *(" " * 30 + line for line in others)]


def schema(options: Mapping[str, Option]) -> dict[str, Any]:
    """Return a JSON Schema of the YAML file of a command."""
    properties = {
        name: _property(name, option) for name, option in options.items() if name != "config"
    }
    if "config" in options:  # not of the keys of a corpus
        for name, (first, *_) in RENAMED.items():
            if first in properties:
                properties[name] = {**properties[first], "deprecated": True}
        for name in sorted({*IGNORED, *stock_names("train"), *stock_names("translate")}):
            properties.setdefault(name, {"deprecated": True})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": [name for name, option in options.items() if option.required],
        "additionalProperties": False,
    }


def _property(name: str, option: Option) -> dict[str, Any]:
    """Return the JSON Schema of one option."""
    value = option.rule.schema()
    if option.rule.kind is bool:
        value = {"enum": [True, False, 0, 1]}  # reading takes the numbers for booleans
    if name == "data":
        value["additionalProperties"] = schema(declared(CorpusConfig))
    elif name in REFUSED:
        value = {"const": option.default, "deprecated": True}
    if equal := [word for key, word in EQUAL if key == name]:
        value = {"anyOf": [value, {"enum": equal, "deprecated": True}]}
    if is_mapping_as_text(option):
        value = {"anyOf": [value, {"type": "object"}]}
    if option.many:
        value = {"anyOf": [value, {"type": "array", "items": value}]}
    if not option.required:
        value = {"anyOf": [value, {"type": "null"}]}
    if name in IGNORED:
        value = {"deprecated": True}
    return {
        **value,
        "description": REFUSED.get(name) or " ".join(option.help.split()),
        "default": list(option.default) if option.many else option.default,
    }
