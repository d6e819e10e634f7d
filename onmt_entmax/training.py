"""Train a model from Python, as the command `onmt-entmax train` does."""

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
        config: such as `prepare` writes.
        options: of the command, such as `train_steps=500`; lists for several values. They replace
            those of the file.

    Raises:
        UserError: for everything that the user can fix, before or while training.
        KeyboardInterrupt: a signal ended the training, whose state is saved.
    """
    words = ["-config", str(config)]
    for name, value in options.items():
        several = isinstance(value, list | tuple)
        words += [f"-{name}", *map(str, value)] if several else [f"-{name}={value}"]
    setup = training_setup(words)
    settings = dict(vars(setup))  # arguments of `run_training`, besides notes and warnings
    for kind in ("notes", "warnings"):
        for text in settings.pop(kind):
            Processes().say(f"{kind.removesuffix('s')}: {text}")
    exit_status = run_training(**settings)
    if exit_status != 0:  # a signal ended the run
        raise KeyboardInterrupt
    return Path(setup.run.save_model)
