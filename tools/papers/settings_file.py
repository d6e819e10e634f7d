"""Settings of an experiment in a YAML file: how they are read, and described to users."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from onmt_entmax.config import ConfigError, declared
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.options.reader import read_yaml

T = TypeVar("T")


def read_settings(path: Path, kind: type[T], **changes: object) -> T:
    """Return the settings of a YAML file, with changes.

    Args:
        path: path of the file.
        kind: a dataclass of settings, which checks their values.
        changes: values that count instead of those of the file.

    Raises:
        UserError: it cannot be read, a key is unknown or missing, or a value is wrong.
    """
    content = {**read_yaml(str(path)), **changes}
    defaults: dict[str, Any] = {field.name: field.default for field in fields(kind)}  # type: ignore[arg-type]
    for name in content:
        if name not in defaults:
            raise UserError(f"{path}: {name}: no such key{nearest(str(name), list(defaults))}")
    for name, default in defaults.items():
        if default is MISSING and name not in content:
            raise UserError(f"{path}: {name}: is missing")
    try:
        return kind(**content)
    except ConfigError as error:
        raise UserError(f"{path}: {error}") from None


def described_keys(kind: type) -> str:
    """Return a line for each key of a dataclass of settings: its meaning and its default."""
    declarations = declared(kind)
    width = max(map(len, declarations)) + 2  # two spaces after the longest name
    lines = []
    for name, declaration in declarations.items():
        values = declaration.default if declaration.many else [declaration.default]
        default = " ".join(str(value).lower() for value in values)  # as YAML writes true
        note = f" (default {default})" if default and not declaration.required else ""
        lines.append(f"    {name:<{width}}{declaration.help}{note}")
    return "\n".join(lines)
