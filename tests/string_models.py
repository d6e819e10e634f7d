"""Random models of strings, small enough to list all their outputs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.inflection_models import write_model
from tests.models import words

PHONES = ("p", "lʷ", "a", "j")
LETTERS = "abcd"


def task_options(
    columns: Sequence[str] = ("source", "target"),
    separators: Mapping[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return options that describe a task."""
    return {"task": {"columns": [*columns], "separators": dict(separators or {})}, **more}


def write_phones(folder: Path, seed: int, end: float = 2, **more: Any) -> Path:
    """Write a random model of pronunciations: letters, and phones between spaces."""
    options = task_options(separators={"target": " "}, **more)
    return write_model(folder, seed, words(LETTERS, PHONES), end, options)
