"""The console command `onmt-entmax`: the table of its commands, and how each of them is run.

`train.py` and `translate.py` in a checkout run the same commands.
"""

import gc
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from onmt_entmax.cli.children import end_with_parent
from onmt_entmax.cli.ending import ending
from onmt_entmax.cli.messages import show_warnings_in_one_line
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.version import __version__

PROGRAM = "onmt-entmax"

# Command to summary, in the groups of the help. Each is a module of `onmt_entmax.cli`, which has a
# `main(arguments) -> int` that raises UserError.
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
        "combine": "average the reports of several models",
        "distill": "make training pairs from the predictions of several models",
        "import-onmt": "convert a checkpoint of OpenNMT-py 2.3.0",
        "export": "write a clean model folder to give to others",
        "verify": "check that model folders are as they were written",
    },
    "Evaluate and show": {
        "audit": "find rows of an inflection table that models exclude",
        "evaluate": "compute the accuracy of predicted tables or inflections, by language",
        "bleu": "compute BLEU, chrF and TER, with significance tests",
        "report": "write an exactness report as an HTML page",
    },
}
COMMANDS = [name for group in GROUPS.values() for name in group]


def run(name: str, arguments: Sequence[str], program: str) -> int:
    """Run a command and return its exit status.

    A training that a signal ended has saved its state; its status is 128 plus the signal's number.

    Args:
        name: a name in `COMMANDS`.
        arguments: the command line after the name.
        program: what the user typed, with which messages and the usage line begin.
    """

    def work() -> int:
        end_with_parent()
        return int(_main_of(name)(arguments))

    typed = sys.argv
    sys.argv = [program, *arguments]  # argparse takes the program's name from here
    try:
        show_warnings_in_one_line()
        return ending(program, work)
    finally:
        sys.argv = typed


def _main_of(name: str) -> Callable[[Sequence[str]], int]:
    """Import the module of a command and return its `main`."""
    # Libraries make many objects that stay: the garbage collector need not look at them while
    # they are imported, nor later, nor when the process ends, which saves a third of the time.
    gc.disable()
    # Some libraries catch every exception while they are imported, a KeyboardInterrupt too. So an
    # interrupt ends the process meanwhile, as it does programs that do not handle it.
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        main: Callable[[Sequence[str]], int]
        main = import_module(f"onmt_entmax.cli.{re.sub('[ -]', '_', name)}").main
        signal.signal(signal.SIGINT, handler)
    finally:
        gc.freeze()
        gc.enable()
    return main


def run_as_script(name: str) -> None:
    """Run a command as train.py and translate.py do, and exit."""
    sys.exit(run(name, sys.argv[1:], Path(sys.argv[0]).name))


def _choose(choices: Mapping[str, str], arguments: Sequence[str], program: str) -> int:
    """Run the command that the first argument chooses; without one, or with -h, print help.

    Args:
        choices: what the user may type, and the names of the commands; a group of commands maps to
            the empty string.
        arguments: what the user typed.
        program: what the user typed before that.

    Raises:
        UserError: there is no such command.
    """
    word = arguments[0] if arguments else "-h"
    if word in ("-h", "--help", "-help"):
        _print_help(choices, program)
        return 0
    if word not in choices:
        hint = nearest(word, choices) or f"; {program} -h lists them"
        raise UserError(f"no command {word!r}{hint}")
    program = f"{program} {word}"
    if choices[word]:
        return run(choices[word], arguments[1:], program)
    inner = {name.split()[1]: name for name in COMMANDS if name.startswith(f"{word} ")}
    return ending(program, lambda: _choose(inner, arguments[1:], program))


def _print_help(choices: Mapping[str, str], program: str) -> None:
    """Print the commands that may be typed after `program`.

    Args:
        choices: what the user may type, and the names of the commands; a group of commands maps to
            the empty string.
        program: what the user typed before that.
    """
    typed = {name or word: word for word, name in choices.items()}
    print(f"usage: {program} COMMAND [OPTIONS]")
    for title, group in GROUPS.items():
        rows = [
            f"  {typed.get(name, name):26}{summary}"
            for name, summary in group.items()
            if name in typed or name.split()[0] in typed  # `prepare` is a group of commands
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
        words = dict.fromkeys(name.split()[0] for name in COMMANDS)
        choices = {word: word if word in COMMANDS else "" for word in words}
        return _choose(choices, arguments, PROGRAM)

    return ending(PROGRAM, work)
