"""Random models of strings, with few enough outputs to list them all."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.inflection_models import write_model
from tests.models import vocabularies_of

PHONES = ("p", "lʷ", "a", "j")
LETTERS = "abcd"
UNKNOWN = "\ufffd"  # how a text shows `<unk>`


def task_options(
    columns: Sequence[str] = ("source", "target"),
    separators: Mapping[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return the options of a model that describe its task.

    Args:
        columns: columns of the model's tables.
        separators: what stands between symbols, by column; in other columns, each character is a
            symbol.
        more: other options, such as `copy_frequency`.
    """
    return {"task": {"columns": [*columns], "separators": dict(separators or {})}, **more}


def write_phones(folder: Path, seed: int, *, end: float = 2, **more: Any) -> Path:
    """Write a random model of pronunciations: letters to phones between spaces.

    Args:
        folder: folder to write.
        seed: seed of the weights.
        end: see `write_model`.
        more: other options, such as `target_order`.

    Returns:
        The folder.
    """
    options = task_options(separators={"target": " "}, **more)
    return write_model(folder, seed, vocabularies_of(LETTERS, PHONES), end=end, options=options)


def all_texts(longest: int) -> list[str]:
    """Return all texts of `PHONES` with spaces between them, up to a number of phones."""
    return [
        " ".join(phones)
        for length in range(longest + 1)
        for phones in itertools.product(PHONES, repeat=length)
    ]
