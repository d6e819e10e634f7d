"""The console command `onmt-entmax`: the table of its commands, and the code that runs one of them.

`train.py` and `translate.py` in a checkout run the same commands.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from onmt_entmax.cli.children import end_with_parent
from onmt_entmax.cli.command_modules import main_of
from onmt_entmax.cli.ending import ending
from onmt_entmax.cli.messages import show_warnings_in_one_line
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.version import __version__

PROGRAM = "onmt-entmax"

# The summary of each command, in the groups of the help. `command_modules.py` finds its module.
GROUPS: Mapping[str, Mapping[str, str]] = {
    "Prepare data": {
        "prepare files": "make training files for translation",
        "prepare table": "make training files from tables of strings",
        "prepare sigmorphon": "make training files for inflection",
    },
    "Train and predict": {
        "train": "train a model",
        "predict": "predict the targets of tables, with certificates",
        "translate": "translate a file, with certificates",
        "inflect": "inflect words",
        "paradigm": "print all forms of a word, or of a list of words",
        "serve": "show outputs and proofs on a web page, as you type",
        "fetch-model": "download a released model",
        "score": "compute the probabilities of given targets",
        "suggest": "list the tokens that may follow a prefix",
        "combine": "average several models by their exactness reports",
        "distill": "make training pairs from the predictions of several models",
        "import-onmt": "convert a checkpoint of OpenNMT-py 2.3.0",
        "export": "write a clean model folder to give to others",
        "verify": "check that the files of model folders are unchanged",
    },
    "Evaluate and show": {
        "audit": "find rows of an inflection table that are probably wrong",
        "evaluate": "compute the accuracy of predicted tables or inflections, by language",
        "bleu": "compute BLEU, chrF and TER, with significance tests",
        "report": "make an HTML page of an exactness report",
    },
}
COMMANDS = [name for group in GROUPS.values() for name in group]


def run(name: str, arguments: Sequence[str], program: str) -> int:
    """Run a command and return its exit status.

    A training that a signal ended has saved its state; its status is 128 plus the signal's number.

    Args:
        name: a name in `COMMANDS`.
        arguments: the command line after the name.
        program: what the user typed, such as `onmt-entmax train` or `train.py`; messages and the
            usage line begin with it.
    """

    def work() -> int:
        end_with_parent()
        return int(main_of(name)(arguments))

    typed = sys.argv
    sys.argv = [program, *arguments]  # argparse takes the program's name from here
    try:
        show_warnings_in_one_line()
        return ending(program, work)
    finally:
        sys.argv = typed


def run_as_script(name: str) -> None:
    """Run a command as train.py and translate.py do, and exit."""
    sys.exit(run(name, sys.argv[1:], Path(sys.argv[0]).name))


def _choose(arguments: Sequence[str], group: str = "") -> int:
    """Run the command that the first argument names; without one, or with -h, print help.

    Args:
        arguments: what the user typed after the program, and after the group.
        group: first word of the commands to choose from, such as `prepare`; empty: all commands.

    Raises:
        UserError: there is no such command.
    """
    prefix = f"{group} " if group else ""
    program = f"{PROGRAM} {group}" if group else PROGRAM
    word = arguments[0] if arguments else "-h"
    if word in ("-h", "--help", "-help"):
        _print_help(program, prefix)
        return 0
    names = [name.removeprefix(prefix) for name in COMMANDS if name.startswith(prefix)]
    words = list(dict.fromkeys(name.split()[0] for name in names))
    if word not in words:
        hint = nearest(word, words) or f"; {program} -h lists them"
        raise UserError(f"no command {word!r}{hint}")
    if word in names:
        return run(f"{prefix}{word}", arguments[1:], f"{program} {word}")
    return ending(f"{program} {word}", lambda: _choose(arguments[1:], word))


def _print_help(program: str, prefix: str) -> None:
    """Print the commands that begin with `prefix`, as they are typed after `program`."""
    print(f"usage: {program} COMMAND [OPTIONS]")
    for title, group in GROUPS.items():
        rows = [
            f"  {name.removeprefix(prefix):26}{summary}"
            for name, summary in group.items()
            if name.startswith(prefix)
        ]
        if rows:
            print("", f"{title}:", *rows, sep="\n")
    print(f"\n{program} COMMAND -h shows the options of a command.")


def main() -> int:
    """Run `onmt-entmax` with the arguments of this process; return the exit status."""
    arguments = sys.argv[1:]

    def work() -> int:
        if arguments[:1] in (["--version"], ["-V"]):
            print(f"{PROGRAM} {__version__}")
            return 0
        return _choose(arguments)

    return ending(PROGRAM, work)
