"""`onmt-entmax train`: train a model as a YAML file and the command line say."""

from collections.abc import Sequence

import torch

from onmt_entmax.cli.ending import warn
from onmt_entmax.options.reader import OptionError, described
from onmt_entmax.options.train import TOPICS, training_options, training_setup
from onmt_entmax.train.run import run_training


def main(arguments: Sequence[str]) -> int:
    """Train a model; return the exit status.

    Raises:
        UserError: for everything that the user can fix, before or while training.
    """
    usage = "-config FILE [-option value ...]\n\nTrain a sequence-to-sequence model."
    if text := described(training_options(), TOPICS, usage, arguments):
        print(text)
        return 0
    setup = training_setup(arguments)
    if setup.run.gpu is not None and not torch.cuda.is_available():
        raise OptionError(
            "gpu_ranks: no GPU here; to train on the CPU, leave gpu_ranks out, or give -gpu_ranks "
            "without a number"
        )
    settings = dict(vars(setup))
    warn(*settings.pop("warnings"))
    return run_training(**settings)
