"""Configurations of the classifiers: YAML files that fill a dataclass, read strictly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from onmt_entmax.errors import UserError, nearest
from onmt_entmax.options.reader import read_yaml
from onmt_entmax.rules import Rule, shown

T = TypeVar("T")


class SettingsError(UserError):
    """A configuration that cannot be used; the message names the file and the key."""


def read_settings(path: Path, kind: type[T], rules: Mapping[str, Rule]) -> T:
    """Return the settings of a YAML file.

    Args:
        path: the file.
        kind: a dataclass with a field for each key; a field without a default must be given.
        rules: what each key may be.

    Raises:
        UserError: the file cannot be read, or is not YAML.
        SettingsError: see `checked`.
    """
    return checked(read_yaml(str(path)), kind, rules, str(path))


def checked(content: Mapping[str, Any], kind: type[T], rules: Mapping[str, Rule], name: str) -> T:
    """Return settings of a mapping; see `read_settings`.

    Raises:
        SettingsError: a key is unknown or missing, or breaks its rule; `name` begins the message.
    """
    for key, value in content.items():
        if key not in rules:
            raise SettingsError(f"{name}: unknown key {shown(key)}{nearest(str(key), rules)}")
        if not rules[key].fits(value):
            raise SettingsError(f"{name}: {key} {rules[key]}, not {shown(value)}")
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name not in content and field.default is MISSING:
            raise SettingsError(f"{name}: {field.name} is missing; it {rules[field.name]}")
    return kind(**content)
