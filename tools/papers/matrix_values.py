"""Checks of the values in a matrix file; each error names the file and the place in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

from onmt_entmax.errors import UserError

Value = TypeVar("Value")

_FOLDER_NAME = re.compile(r"(?!\.+$)[\w.+-]+")  # but not `.` and `..`, which are other folders


class MatrixFile:
    """A matrix file whose values are checked.

    A place in it is written as the keys that lead there, such as `cells: softmax: translate`.

    Args:
        path: path of the file, for errors.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def error(self, place: str, reason: str) -> UserError:
        """Return the error of a value at a place in the file."""
        return UserError(f"{self.path}: {place}: {reason}")

    def options(self, value: object, place: str, refused: Collection[str] = ()) -> dict[str, Any]:
        """Return a value that must be options with their values.

        Args:
            value: None stands for no options, as in `cell:` with nothing behind it.
            place: place of the value in the file.
            refused: options that the runner chooses, which may not be among them.

        Raises:
            UserError: it is something else, or has a refused option.
        """
        options = self._mapping(value, place, "options with their values")
        for name in options:
            if name in refused:
                raise self.error(place, f"{name} is chosen by the runner")
        return options

    def folders(self, value: object, place: str) -> dict[str, Any]:
        """Return a value that must map names of cells or pairs, which are folders, to their values.

        Args:
            value: None stands for no cells, as in `cells:` with nothing behind it.
            place: place of the value in the file.

        Raises:
            UserError: it is something else, or a name cannot be that of a folder.
        """
        content = self._mapping(value, place, "names with their options")
        for name in content:
            if not isinstance(name, str) or not _FOLDER_NAME.fullmatch(name):
                raise self.error(
                    place,
                    "a cell or pair is a folder, so its name is a word of letters, digits and "
                    f"- _ + . (in quotes where YAML would see a number), not {name!r}",
                )
        return content

    def _mapping(self, value: object, place: str, expected: str) -> dict[str, Any]:
        """Return a value that must be a mapping; None stands for an empty one.

        Raises:
            UserError: it is something else; the message says what was expected.
        """
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.error(place, f"expected {expected}, not {value!r}")
        return value

    def choice(self, value: object, place: str, possible: Sequence[Value]) -> Value:
        """Return a value that must be one of several.

        Args:
            value: any content of the file.
            place: place of the value in the file.
            possible: values, of which None stands for a key that is not in the file.

        Raises:
            UserError: it is none of them.
        """
        for allowed in possible:
            if value == allowed:
                return allowed
        raise self.error(place, f"{value!r} is not one of {list(possible)}")
