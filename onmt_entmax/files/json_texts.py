"""JSON as text, without the numbers that JSON does not have."""

import json
import math
from collections.abc import Mapping
from typing import Any


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
