"""The names of the options of `train` and `translate`, which may share a YAML file.

Each of the two ignores the options of the other one in such a file.
"""

from functools import cache
from typing import Literal


@cache
def names_of(command: Literal["train", "translate"]) -> frozenset[str]:
    """Return the names of all options of a command: OpenNMT-py's, and this package's own."""
    # Imported late, since both tables are needed only for an unknown option and for the schema.
    from onmt_entmax.options.train_table import training_options
    from onmt_entmax.options.translate_table import translation_options

    return frozenset(training_options() if command == "train" else translation_options())
