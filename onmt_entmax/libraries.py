"""Import libraries that may be missing; an error of one line then says what to do."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from onmt_entmax.errors import UserError


class MissingLibraryError(UserError, ImportError):
    """A library that is not installed; the message says what to do."""


@contextmanager
def opennmt() -> Iterator[None]:
    """Import OpenNMT-py in a block, without warnings.

    OpenNMT-py 2.3.0 decorates its sparse functions with an API that torch deprecated.

    Raises:
        MissingLibraryError: OpenNMT-py, or a library that it imports, is not installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except ImportError as error:
            name = (error.name or "onmt").partition(".")[0]
            if name == "onmt":
                # Without --no-deps, pip would look for pyonmttok.
                missing, command = "is not installed", "--no-deps OpenNMT-py==2.3.0"
            else:
                missing, command = f"needs {name}", name
            raise MissingLibraryError(
                f"OpenNMT-py 2.3.0 {missing}: pip install {command}"
            ) from None


def pyonmttok(instead: str) -> Any:
    """Return the module: OpenNMT's tokeniser, whose last wheels are for Python 3.12.

    Args:
        instead: what to do without it, for the error.

    Raises:
        MissingLibraryError: it is not installed.
    """
    try:
        import pyonmttok
    except ImportError:
        raise MissingLibraryError(
            f"pyonmttok is not installed: pip install pyonmttok (up to Python 3.12), or {instead}"
        ) from None
    return pyonmttok
