"""Checks of the values in a matrix file; each error names the file and the place in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.errors import UserError
from onmt_entmax.options.reader import read_yaml

_FOLDER_NAME = re.compile(r"(?!\.+$)[\w.+-]+")  # `.` and `..` are other folders


class MatrixFile:
    """A matrix file whose values are checked.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def error(self, place: str, reason: str) -> UserError:
        """Return the error of a value at a place in the file."""
        return UserError(f"{self.path}: {place}: {reason}")

    def mapping(self, value: Any, place: str, refused: Collection[str] = ()) -> dict[str, Any]:
        """Return a value that must be a mapping, of names to cells, to pairs or to options.

        Args:
            value: None stands for an empty mapping, as in `cell:` with nothing behind it.
            place: of the value in the file.
            refused: options that the runner chooses, which the mapping may not have.

        Raises:
            UserError: it is something else, or has a refused option.
        """
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.error(place, f"expected options with their values, not {value!r}")
        for name in value:
            if name in refused:
                raise self.error(place, f"{name} is chosen by the runner")
        return value

    def named(self, value: Any, place: str) -> dict[str, Any]:
        """Return a value that must be a mapping whose names can be those of folders.

        Raises:
            UserError: it is something else.
        """
        mapping = self.mapping(value, place)
        for name in mapping:
            if not isinstance(name, str) or not _FOLDER_NAME.fullmatch(name):
                raise UserError(
                    f"{self.path}: a cell or pair is a folder, so its name is a word of letters, "
                    "digits and - _ + . (in quotes where YAML would see a number), not "
                    f"{name!r}"
                )
        return mapping

    def choice(self, value: Any, key: str, possible: Sequence[str | None]) -> Any:
        """Return a value that must be one of several.

        Raises:
            UserError: it is none of them.
        """
        if value not in possible:
            raise self.error(key, f"{value!r} is not one of {list(possible)}")
        return value

    def read_beside(self, name: Any) -> dict[str, Any]:
        """Read a YAML file from beside the matrix file, or from the current folder.

        Raises:
            UserError: it cannot be read.
        """
        beside = self.path.parent / str(name)
        return read_yaml(str(beside if beside.is_file() else name))
