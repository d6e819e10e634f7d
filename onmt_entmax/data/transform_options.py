"""Read and check the options of OpenNMT-py's transforms, before the transforms are built."""

import ast
import os
from argparse import Namespace
from typing import Any

from onmt_entmax.data.subwords import SUBWORD_FILES
from onmt_entmax.errors import UserError
from onmt_entmax.files import no_such_file
from onmt_entmax.rules import shown

# Options of `onmt_tokenize` that hold a mapping as text.
MAPPINGS = ("src_onmttok_kwargs", "tgt_onmttok_kwargs")


class TransformError(UserError):
    """A transform that does not exist or cannot be built."""


def read_mappings(options: Namespace) -> dict[str, dict[str, Any]]:
    """Return the options of `onmt_tokenize` that hold a mapping as text, as mappings.

    Raises:
        TransformError: one is no mapping, or names a file, which model folders would not keep.
    """
    mappings = {}
    for name in MAPPINGS:
        text = getattr(options, name, None)
        if not isinstance(text, str):  # absent, or a mapping already
            continue
        mapping = _read_mapping(text)
        if mapping is None:
            raise TransformError(
                f"{name}: expected a mapping such as {{'mode': 'space'}}, not {shown(text)}"
            )
        side = name.removesuffix("_onmttok_kwargs")
        for key in mapping:
            if key.endswith("_path"):
                files = f"{side}_subword_model or {side}_subword_vocab"
                raise TransformError(f"{name}: {key}: name it in {files}, which model folders keep")
        mappings[name] = mapping
    return mappings


def _read_mapping(text: str) -> dict[str, Any] | None:
    """Return a mapping in Python's notation; None if the text is something else."""
    try:
        mapping = ast.literal_eval(text)  # executes no code
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
    if isinstance(mapping, dict) and all(isinstance(key, str) for key in mapping):
        return mapping
    return None


def refuse_missing_files(options: Namespace) -> None:
    """Refuse subword files that are not there, and pipes and devices, which never end.

    Raises:
        TransformError: names the first.
    """
    for name in SUBWORD_FILES:
        path = getattr(options, name, None)
        if path and not os.path.isfile(path):
            raise TransformError(f"{name}: {no_such_file(path)}")


def refuse_types_without_model(options: Namespace) -> None:
    """Refuse a type of subwords without their model: pyonmttok would leave words whole.

    Raises:
        TransformError: names the first.
    """
    for side in ("src", "tgt"):
        kind, model = f"{side}_subword_type", f"{side}_subword_model"
        shared = side == "tgt" and options.share_vocab  # the source's tokeniser serves both
        if getattr(options, kind, "none") != "none" and not getattr(options, model) and not shared:
            raise TransformError(f"{kind}: needs {model}, or words stay whole")
