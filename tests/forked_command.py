"""Run a script in a fork of the server of commands, much as a new interpreter would run it.

It differs from a new interpreter in that libraries are loaded, memory is not freed at the end, and
the console command that the script may start runs by the server, too.
"""

import atexit
import gc
import os
import pkgutil
import random
import runpy
import sys
import threading
import traceback
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import numpy

import onmt_entmax.cli
from onmt_entmax.cli import ending
from tests.command_client import CONSOLE, Request, console_command

# Modules that some command imports only when it needs them. `torch._dynamo`, which takes more than
# a second, is imported by the first update of an optimiser.
LIBRARIES = (
    "matplotlib.pyplot",
    "onmt_entmax.opennmt",
    "sacrebleu.metrics",
    "safetensors.torch",
    "torch._dynamo",
    "torch.distributed",
    "torch.utils.tensorboard",
    "yaml",
)


def load_libraries() -> None:
    """Import all that commands import, before the server forks.

    A fork has the thread that forked and no other: a second one would be lost in it.
    """
    commands = pkgutil.walk_packages(onmt_entmax.cli.__path__, f"{onmt_entmax.cli.__name__}.")
    for name in (*LIBRARIES, *(module.name for module in commands)):
        with suppress(ImportError):  # the command that needs the module will report it
            import_module(name)
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"{threads} threads in a process that is to be forked"
    # Objects that are loaded stay. A garbage collection in a fork would write to them all, and so
    # copy their memory.
    gc.collect()
    gc.freeze()


def run(request: Request, server: str) -> NoReturn:
    """Run a script in this process, and end the process.

    Args:
        request: the script.
        server: the path of the server's socket; commands that the script starts run there, too.
    """
    random.seed()
    numpy.random.seed()
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update(request.environment)
    sys.argv = [request.script, *request.arguments]
    ending.CONSOLE = console_command(server)
    try:
        if request.script == CONSOLE:
            runpy.run_module(CONSOLE, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(request.script, run_name="__main__")
        _exit(0)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            _exit(end.code or 0)
        print(end.code, file=sys.stderr)  # of any other type, as Python does
        _exit(1)
    except BaseException:
        traceback.print_exc()
        _exit(1)


def _exit(status: int) -> NoReturn:
    """End the process as `Py_FinalizeEx` of CPython does, but do not free memory: it takes long.

    The interpreter waits for threads, runs the functions of `atexit`, and flushes its streams.
    """
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        status = 120  # the interpreter's own status if it cannot flush
    sys.stderr.flush()
    os._exit(status & 0xFF)
