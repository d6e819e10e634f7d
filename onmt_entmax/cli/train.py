"""`onmt-entmax train`: train a model as a YAML file and the command line say."""

from __future__ import annotations

from collections.abc import Sequence

from onmt_entmax.data.corpus import CorpusError
from onmt_entmax.opennmt import SequenceTooLongError
from onmt_entmax.options.help import ALL, TRAINING, help_text, is_help
from onmt_entmax.options.train import training_parser, training_setup
from onmt_entmax.processes import end_with_parent
from onmt_entmax.train.run import run_training


def main(arguments: Sequence[str]) -> int:
    """Train a model; return the exit status.

    Raises:
        UserError: for everything that the user can fix, before or while training.
    """
    if is_help(arguments):
        print(help_text(training_parser(), TRAINING, bool(set(ALL) & set(arguments))))
        return 0
    end_with_parent()
    setup = training_setup(arguments)
    try:
        return run_training(
            run=setup.run,
            data=setup.data,
            vocabulary=setup.vocabulary,
            model=setup.model,
            training=setup.training,
            validation=setup.validation,
            record=setup.record,
        )
    except SequenceTooLongError:
        raise CorpusError(
            "a sentence is longer than the 5000 positions of a Transformer: use the transform "
            "filtertoolong, or src_seq_length_trunc and tgt_seq_length_trunc"
        ) from None
