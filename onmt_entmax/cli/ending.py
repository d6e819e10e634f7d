"""How a command ends: its exit status, and errors as one line.

Scripts of `tools/` take from here what they need: `argument_parser` and `run_script`.
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

    User errors, disk errors and text that cannot be encoded print one line and give status 2, an
    interrupt from the keyboard gives 130, a closed pipe gives 141 and prints nothing, and a command
    that failed gives its own status. Other errors are bugs, and keep their traceback.

    Args:
        program: the name that error messages begin with.
        work: the command.
    """
    open_streams()
    try:
        return _status_of(work)
    except UserError as error:
        message = str(error)
    except subprocess.CalledProcessError as error:  # of a command that has said why
        return error.returncode if error.returncode > 0 else 128 - error.returncode
    except BrokenPipeError:
        discard_output()
        return _PIPE_CLOSED
    except OSError as error:
        discard_output()
        message = _disk_message(error)
    except UnicodeEncodeError as error:
        text = error.object[error.start : error.end][:_QUOTED]
        message = (
            f"{text!a} cannot be written in {error.encoding}; mend the input, or set "
            "PYTHONIOENCODING=utf-8"
        )
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except Exception as error:
        reason = _exhaustion_message(error)
        if reason is None:
            raise
        message = reason
    print(f"{program}: error: {one_line(message)}", file=sys.stderr)
    return _FAILED


def _status_of(work: Callable[[], int]) -> int:
    """Return the exit status of `work`, which `command_began` dates; write all of its output."""
    before = _BEGAN.set(time.monotonic())
    try:
        return work()
    finally:
        _BEGAN.reset(before)
        sys.stdout.flush()  # here, since errors in writing at exit would be Python's


def _disk_message(error: OSError) -> str:
    """Return what went wrong with a file or a stream, and with which."""
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
