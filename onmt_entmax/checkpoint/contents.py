"""Names and size limits of the files of a model folder, and the error for unreadable folders."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from onmt_entmax.errors import UserError
from onmt_entmax.files import FileError

FORMAT_VERSION = "1.1"  # folders with a larger first number are refused
# Names of the files; the docstring of the package says what they hold.
CONFIG = "config.yaml"
VOCABULARY = "vocab.json"
CELLS = "cells.tsv"
WEIGHTS = "model.safetensors"
STATE = "training/state.pt"
# Sizes in bytes. A larger file is refused before it is read: a stranger may have made it to fill
# the memory.
LARGEST_TENSORS = 2**34  # weights, or a training state: 4 billion numbers in float32
LARGEST_TEXT = 2**28  # a vocabulary of about ten million tokens, or a subword model


class CheckpointError(UserError):
    """A folder without a readable model, or one that a training cannot continue or replace.

    The message names the file or folder. One that cannot be written raises `FileError`.
    """


@contextmanager
def as_checkpoint_error(path: Path) -> Iterator[None]:
    """Raise the errors of reading a file as a CheckpointError that names it."""
    try:
        yield
    except FileError as error:
        raise CheckpointError(str(error)) from None
    except (UserError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path}: {error}") from None
