"""Set up a training of the toy task by options in a file and in flags."""

from pathlib import Path
from typing import Any

from onmt_entmax.config import TrainingSetup
from onmt_entmax.options.train import training_setup
from tests.toy import write_config

Changes = dict[str, Any]
"""Options that are added to the toy task's file, or replace those in it; None leaves one out."""

# A small Transformer in place of the toy task's recurrent network.
TRANSFORMER: Changes = {
    "encoder_type": "transformer",
    "decoder_type": "transformer",
    "word_vec_size": 32,
    "heads": 4,
    "global_attention_function": None,
}
LEARNED_ENCODER_ATTENTION: Changes = TRANSFORMER | {"encoder_attention_function": "learned"}
ENTMAX_OUTPUT: Changes = {"generator_function": "entmax", "generator_alpha": 1.3}


def toy_setup(folder: Path, flags: str = "", **changes: object) -> TrainingSetup:
    """Return the setup of a training of the toy task.

    Args:
        folder: folder for its corpora and its file.
        flags: the command line besides the file, with spaces between words.
        changes: see `Changes`.
    """
    return training_setup(["-config", str(write_config(folder, **changes)), *flags.split()])


def parameter_id(value: Changes | str) -> str:
    """Return pytest's id of a parameter: the names of its options, or the text that it is."""
    return value if isinstance(value, str) else ", ".join(value)
