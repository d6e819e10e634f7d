"""The JSON Schema of the YAML file of a command, by which editors complete and check options."""

from collections.abc import Mapping
from typing import Any

from onmt_entmax.config import CorpusConfig, Option, declared
from onmt_entmax.options.commands import names_of
from onmt_entmax.options.declared import is_mapping_as_text
from onmt_entmax.options.stock import IGNORED, REFUSED, RENAMED
from onmt_entmax.options.stock_values import EQUAL_VALUES


def schema(options: Mapping[str, Option]) -> dict[str, Any]:
    """Return a JSON Schema of the YAML file of a command.

    A file may also have names of other versions, and options of other commands. The schema lists
    them as deprecated.
    """
    properties = _properties(options)
    for name, (first_here, *_) in RENAMED.items():
        if first_here in properties:
            properties[name] = {**properties[first_here], "deprecated": True}
    for name in sorted({*IGNORED, *names_of("train"), *names_of("translate")}):
        properties.setdefault(name, {"deprecated": True})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_mapping(options, properties),
    }


def _mapping(
    options: Mapping[str, Option], properties: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the schema of a mapping that has these options, and no other properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name, option in options.items() if option.required],
        "additionalProperties": False,
    }


def _properties(options: Mapping[str, Option]) -> dict[str, dict[str, Any]]:
    """Return the schemas of options by name; a file names no other file with `config`."""
    return {name: _property(name, option) for name, option in options.items() if name != "config"}


def _property(name: str, option: Option) -> dict[str, Any]:
    """Return the JSON Schema of one option."""
    value = option.rule.schema()
    if option.rule.kind is bool:
        value = {"enum": [True, False, 0, 1]}  # reading takes the numbers for booleans
    if name == "data":
        keys = declared(CorpusConfig)
        value["additionalProperties"] = _mapping(keys, _properties(keys))
    elif name in REFUSED:
        value = {"const": option.default, "deprecated": True}
    equal = [word for key, word in EQUAL_VALUES if key == name]
    if equal:
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
