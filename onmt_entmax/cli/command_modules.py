"""Import the module of a command, which takes seconds if it needs large libraries.

A command is a module of `onmt_entmax.cli`, such as `prepare_files`; its `main(arguments)` returns
the exit status, and raises UserError.
"""

import gc
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module


def main_of(name: str) -> Callable[[Sequence[str]], int]:
    """Import the module of a command, such as `prepare files`, and return its `main`."""
    with _uncollected_imports(), _interrupts_that_end_the_process():
        main: Callable[[Sequence[str]], int]
        main = import_module(f"onmt_entmax.cli.{re.sub('[ -]', '_', name)}").main
    return main


@contextmanager
def _uncollected_imports() -> Iterator[None]:
    """Exclude the objects that are made during a block from garbage collection, for good.

    Libraries make many objects that live as long as the process. An import takes a third less time
    if the collector never visits them, neither now nor at the end of the process.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _interrupts_that_end_the_process() -> Iterator[None]:
    """Let Ctrl-C end the process during a block, as it ends programs that do not handle it.

    Some libraries catch every exception while they are imported, even a KeyboardInterrupt. If
    somebody has replaced Python's own handler, theirs stays.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
