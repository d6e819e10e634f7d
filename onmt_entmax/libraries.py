"""Import OpenNMT-py and pyonmttok, or say in one line how to install what is missing.

They may be missing although this package is installed: pyonmttok has no wheels after Python 3.12,
and OpenNMT-py requires it.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from onmt_entmax.errors import UserError


class MissingLibraryError(UserError, ImportError):
    """A library that is not installed; the message says what to do."""


@contextmanager
def importing_opennmt() -> Iterator[None]:
    """Turn a failed import of OpenNMT-py in a block into an error of one line; hide all warnings.

    OpenNMT-py 2.3.0 uses deprecated functions of torch, which users of this package cannot change.

    Raises:
        MissingLibraryError: OpenNMT-py, or a library that it imports, is not installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except ImportError as error:
            name = (error.name or "onmt").partition(".")[0]  # of the package that was not found
            if name == "onmt":
                # Without --no-deps, pip would also install pyonmttok, and fail.
                missing, command = "is not installed", "--no-deps OpenNMT-py==2.3.0"
            else:
                missing, command = f"needs {name}", name
            raise MissingLibraryError(
                f"OpenNMT-py 2.3.0 {missing}: pip install {command}"
            ) from None


def import_pyonmttok(instead: str) -> Any:
    """Return the module `pyonmttok`, OpenNMT's tokeniser.

    Args:
        instead: what the user can do without it, for the error.

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
