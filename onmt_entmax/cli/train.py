"""`onmt-entmax train`: train a model as a YAML file and the command line say."""

from __future__ import annotations

from collections.abc import Sequence

from onmt_entmax.data.corpus import CorpusError
from onmt_entmax.opennmt import SequenceTooLongError
from onmt_entmax.options.train import training_parser, training_setup
from onmt_entmax.processes import HELP
from onmt_entmax.train.run import run_training


def main(arguments: Sequence[str]) -> int:
    """Train; return the exit status.

    Raises:
        UserError: anything that the user can mend, before or while training.
    """
    if set(arguments) & set(HELP):
        training_parser().print_help()
        return 0
    setup = training_setup(arguments)
    try:
        return run_training(setup)
    except SequenceTooLongError:
        raise CorpusError(
            "a sentence is longer than the 5000 positions of a Transformer: use the transform "
            "filtertoolong, or src_seq_length_trunc and tgt_seq_length_trunc"
        ) from None
