"""How a command ends: its exit status, and errors as one line.

Scripts of `tools/` import `argument_parser` and `run_script` from here.
"""

import errno
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.messages import one_line
from onmt_entmax.cli.streams import discard_output, open_streams
from onmt_entmax.errors import UserError
from onmt_entmax.exhaustion import exhaustion

__all__ = ["CONSOLE", "argument_parser", "command_began", "ending", "run_script"]

# The console command of this environment.
CONSOLE: tuple[str, ...] = (sys.executable, "-m", "onmt_entmax")
_BEGAN: ContextVar[float | None] = ContextVar("began", default=None)
# Exit statuses: that of argparse, and 128 plus the signal, as a shell gives them.
_FAILED = 2
_INTERRUPTED = 130  # SIGINT
_PIPE_CLOSED = 141  # SIGPIPE
_QUOTED = 20  # characters of a text that cannot be written


def run_script(main: Callable[[Sequence[str]], int]) -> None:
    """Run the `main` of a script of `tools/` under the script's name, and exit."""
    sys.exit(ending(Path(sys.argv[0]).name, lambda: main(sys.argv[1:])))


def command_began() -> float | None:
    """Return when the command began, by `time.monotonic`, before its libraries were imported."""
    return _BEGAN.get()


def ending(program: str, work: Callable[[], int]) -> int:
    """Return the exit status of `work`, or of the error that stopped it.

    User errors, disk errors, texts that cannot be encoded, and a lack of memory, threads or the
    like print one line and give status 2. An interrupt from the keyboard gives 130. A closed pipe
    gives 141, and prints nothing. A command that `work` ran and that failed gives its own status.
    Other errors are bugs, and keep their traceback.

    Args:
        program: the name that error messages begin with.
        work: the command.
    """
    open_streams()
    try:
        return _status_of(work)
    except subprocess.CalledProcessError as error:  # the failed command has printed its error
        return error.returncode if error.returncode > 0 else 128 - error.returncode
    except BrokenPipeError:
        discard_output()
        return _PIPE_CLOSED
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except Exception as error:
        message = _message_of(error)
        if message is None:
            raise
        if isinstance(error, OSError):
            discard_output()
    print(f"{program}: error: {one_line(message)}", file=sys.stderr)
    return _FAILED


def _message_of(error: Exception) -> str | None:
    """Return the message of an error about which the user can do something; None: it is a bug."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, OSError):
        return _disk_message(error)
    if isinstance(error, UnicodeEncodeError):
        text = error.object[error.start : error.end][:_QUOTED]
        return (
            f"{text!a} cannot be written in {error.encoding}; mend the input, or set "
            "PYTHONIOENCODING=utf-8"
        )
    return _exhaustion_message(error)


def _status_of(work: Callable[[], int]) -> int:
    """Return the exit status of `work`; until it ends, `command_began` returns when it began."""
    before = _BEGAN.set(time.monotonic())
    try:
        return work()
    finally:
        _BEGAN.reset(before)
        sys.stdout.flush()  # not at exit, where Python itself would report an error


def _disk_message(error: OSError) -> str:
    """Return what went wrong with a file or a stream, and its name."""
    message = str(error.strerror or error)
    if error.filename:
        return f"{error.filename}: {message}"
    if error.errno == errno.EBADF:
        return f"the standard output is closed: {message}"
    return message


def _exhaustion_message(error: Exception) -> str | None:
    """Return what the machine has too little of; None: the error is of another kind."""
    if "can't start new thread" in str(error):  # a RuntimeError of Python's
        return "no thread can be started; end other programs, or raise `ulimit -u`"
    reason = exhaustion(error)
    return None if reason is None else f"this {reason}"
