"""Names and size limits of the files of a model folder, and the error for unreadable folders."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onmt_entmax.errors import UserError
from onmt_entmax.files import FileError

FORMAT_VERSION = "1.1"  # folders with a larger first number are refused
CONFIG = "config.yaml"
VOCABULARY = "vocab.json"
CELLS = "cells.tsv"
WEIGHTS = "model.safetensors"
STATE = "training/state.pt"
# Sizes in bytes; a larger file is refused before it is read into memory.
LARGEST_TENSORS = 2**34  # weights, or a training state
LARGEST_TEXT = 2**28


class CheckpointError(UserError):
    """A model folder that cannot be read or written; the message names the file."""


@contextmanager
def as_checkpoint_error(path: Path) -> Iterator[None]:
    """Raise the errors of reading a file as a CheckpointError that names it."""
    try:
        yield
    except FileError as error:
        raise CheckpointError(str(error)) from None
    except (UserError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path}: {error}") from None
