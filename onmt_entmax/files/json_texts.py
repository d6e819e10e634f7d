"""Write and read the JSON of commands, with null for numbers that JSON does not have."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onmt_entmax.files.paths import FileError, naming


def json_text(content: Any) -> str:
    """Return an object as the text of a JSON file for people."""
    return json.dumps(finite(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def json_line(content: Any) -> str:
    """Return an object as a line of a JSON lines file."""
    return json.dumps(finite(content), ensure_ascii=False, allow_nan=False) + "\n"


def finite(content: Any) -> Any:
    """Return an object with None for numbers that are not finite, which JSON does not have."""
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {key: finite(value) for key, value in content.items()}
    return [*map(finite, content)] if isinstance(content, list | tuple) else content


def read_object(path: Path) -> dict[str, Any]:
    """Return the object of a JSON file that a command here wrote.

    Raises:
        FileError: it cannot be read, or holds something else.
    """
    with naming(path, "read"):
        text = path.read_bytes()
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise FileError(f"{path}: damaged; delete it, and run again")
    return content
