"""Train a model from Python, as the command `onmt-entmax train` does."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onmt_entmax.options.train import training_setup
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.train.run import run_training


def train_model(config: Path | str, **options: Any) -> Path:
    """Train a model as a YAML file says; return its folder, from which others load it.

        folder = train_model("run/mine/train.yaml", train_steps=500)
        Transducer(folder).predict("ploaie")

    Args:
        config: path of the file, such as `prepare` writes.
        options: options of the command, such as `train_steps=500`; lists for several values. They
            replace those of the file. None leaves an option as it is there.

    Raises:
        UserError: for everything that the user can fix, before or while training.
        KeyboardInterrupt: a signal ended the training, whose state is saved.
    """
    setup = training_setup(["-config", str(config), *_flags(options)])
    processes = Processes()
    for note in setup.notes:
        processes.say(f"note: {note}")
    for warning in setup.warnings:
        processes.say(f"warning: {warning}")
    exit_status = run_training(setup)
    if exit_status != 0:  # a signal ended the run
        raise KeyboardInterrupt
    return Path(setup.run.save_model)


def _flags(options: Mapping[str, Any]) -> list[str]:
    """Return options as words of the command line of `train`."""
    words: list[str] = []
    for name, value in options.items():
        if value is None:
            continue
        if isinstance(value, list | tuple):
            words += [f"-{name}", *map(str, value)]
        else:
            words.append(f"-{name}={value}")
    return words
