"""Read checkpoints of OpenNMT-py 2.3.0, which are pickles, without running anything in them.

torch's `weights_only` reader accepts only tensors, plain containers, and the classes on a list.
Here, this list has an empty class for each name in `FOREIGN`. A file that names anything else is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from onmt_entmax.checkpoint import read_torch_file
from onmt_entmax.data.vocabulary import Vocabularies, VocabularyError
from onmt_entmax.data.vocabulary_content import read_vocabularies
from onmt_entmax.errors import UserError
from onmt_entmax.rules import shown

# Classes and functions that a checkpoint of OpenNMT-py 2.3.0 names. From `AlignField` on, they
# belong to models with copy attention or alignments, which are read only to refuse them by name.
FOREIGN = (
    "argparse.Namespace",
    "functools.partial",
    "onmt.inputters.text_dataset.TextMultiField",
    "onmt.inputters.text_dataset._feature_tokenize",
    "torchtext.data.field.Field",
    "torchtext.data.utils._split_tokenizer",
    "torchtext.vocab.Vocab",
    "onmt.inputters.inputter.AlignField",
    "onmt.inputters.inputter.make_src",
    "onmt.inputters.inputter.make_tgt",
    "onmt.inputters.inputter.parse_align_idx",
    "torchtext.data.field.LabelField",
    "torchtext.data.field.RawField",
)


class ImportingError(UserError):
    """A checkpoint cannot be read or converted."""


class Inert:
    """Stand-in for a foreign class or function, which keeps fields and runs nothing."""

    def __new__(cls, *_: Any, **__: Any) -> Inert:
        """Return an instance without fields, whatever the arguments."""
        return super().__new__(cls)

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            self.__dict__.update(state)


def stand_in(path: str) -> type[Inert]:
    """Return an inert class under the name of a foreign one."""
    module, _, name = path.rpartition(".")
    return type(name, (Inert,), {"__module__": module, "__qualname__": name})


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Return the content of a checkpoint, with inert objects for foreign ones.

    Raises:
        ImportingError: it cannot be read, or is not a checkpoint of OpenNMT-py 2.3.0.
    """
    try:
        stand_ins: list[Any] = [stand_in(name) for name in FOREIGN]
        with torch.serialization.safe_globals(stand_ins), open(path, "rb") as file:
            content = read_torch_file(file)
    except UnpicklingError as error:
        refused = re.search(r"GLOBAL (\S+)", str(error))
        if refused is None:
            raise ImportingError(f"{path}: not a checkpoint of OpenNMT-py, or damaged") from None
        raise ImportingError(
            f"{path}: refused: it names {refused[1]}, which no checkpoint of stock OpenNMT-py "
            "2.3.0 needs"
        ) from None
    except Exception:  # damaged files raise many kinds of errors, which nothing lists
        raise ImportingError(f"{path}: not a checkpoint of OpenNMT-py, or damaged") from None
    parts = {"model": dict, "generator": dict, "vocab": dict, "opt": Inert}
    for name, kind in parts.items():
        if not isinstance(content, dict) or not isinstance(content.get(name), kind):
            raise ImportingError(f"{path}: no {name!r} in it, as OpenNMT-py 2.3.0 writes one")
    return content


def vocabularies_of(content: Mapping[str, Any]) -> Vocabularies:
    """Return the vocabularies, with the ids of the checkpoint.

    Raises:
        ImportingError: there are source features, or no vocabularies as OpenNMT-py writes them.
    """
    sides = []
    for side in ("src", "tgt"):
        try:
            fields = content["vocab"][side].fields
            tokens = fields[0][1].vocab.itos
            features = [shown(name) for name, _ in fields[1:]]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise ImportingError(f"no {side} vocabulary as OpenNMT-py 2.3.0 writes it") from None
        if features:
            raise ImportingError(f"source features are not supported ({', '.join(features)})")
        sides.append(tokens)
    try:
        return read_vocabularies(*sides)
    except VocabularyError as error:
        raise ImportingError(f"vocabulary: {error}") from None
