"""`onmt-entmax train`: train a model as a YAML file and the command line say."""

from collections.abc import Sequence

from onmt_entmax.cli.ending import command_began
from onmt_entmax.cli.messages import note, warn
from onmt_entmax.options.help import requested_help
from onmt_entmax.options.train import training_setup
from onmt_entmax.options.train_table import TOPICS, training_options
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.run import run_training

_USAGE = "-config FILE [-option value ...]\n\nTrain a sequence-to-sequence model."


def main(arguments: Sequence[str]) -> int:
    """Train a model, or print help; return the exit status.

    Raises:
        UserError: for everything that the user can fix, before or while training.
    """
    help_text = requested_help(training_options(), TOPICS, _USAGE, arguments)
    if help_text:
        print(help_text)
        return 0
    setup = training_setup(arguments)
    if Processes().writes:
        note(*setup.notes)
        warn(*setup.warnings)
    return run_training(setup, began=command_began())
