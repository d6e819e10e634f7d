"""Import OpenNMT-py and pyonmttok, or say in one line what is wrong with the installation.

They may be missing although this package is installed: pyonmttok has no wheels after Python 3.12,
and OpenNMT-py requires it.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from onmt_entmax.errors import UserError, first_line

# What pip installs for OpenNMT-py 2.3.0, by the name of the top-level module.
_REQUIREMENTS = {
    # Without --no-deps, pip would also install pyonmttok, and fail.
    "onmt": "--no-deps OpenNMT-py==2.3.0",
    "configargparse": "ConfigArgParse",
    "flask": "Flask",
    "sacrebleu": "sacrebleu",
    "tensorboard": "tensorboard",
    "torchtext": "torchtext==0.5.0",  # later ones lack the `Field` that OpenNMT-py imports
    "waitress": "waitress",
    "yaml": "PyYAML",
}


class MissingLibraryError(UserError, ImportError):
    """A library that is not installed; the message says what to do."""


class BrokenLibraryError(UserError, ImportError):
    """A library that cannot be imported although it is installed; the message says why."""


@contextmanager
def without_warnings() -> Iterator[None]:
    """Hide all warnings in a block.

    The import of OpenNMT-py 2.3.0 warns of deprecated functions of torch, whose use in OpenNMT-py
    users of this package cannot change.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def importing_opennmt() -> Iterator[None]:
    """Turn a failed import of OpenNMT-py in a block into an error of one line.

    Raises:
        MissingLibraryError: OpenNMT-py, or a library that it requires, is not installed.
        BrokenLibraryError: such a library is installed, but not as OpenNMT-py 2.3.0 needs it.
    """
    try:
        yield
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name in _REQUIREMENTS:
            missing = "is not installed" if error.name == "onmt" else f"needs {error.name}"
            raise MissingLibraryError(
                f"OpenNMT-py 2.3.0 {missing}: pip install {_REQUIREMENTS[error.name]}"
            ) from None
        reason = f"OpenNMT-py 2.3.0 cannot be imported: {first_line(error)}"
        module = (error.name or "").partition(".")[0]
        requirement = _REQUIREMENTS.get(module, "")
        if "==" in requirement:  # another version may be installed
            reason += f"; pip install {requirement}"
        elif isinstance(error, ModuleNotFoundError) and error.name == module:
            reason += f"; pip install what provides {module}"
        raise BrokenLibraryError(reason) from error


def import_pyonmttok(instead: str) -> Any:
    """Return the module `pyonmttok`, OpenNMT's tokeniser.

    Args:
        instead: what the user can do without it, which ends the errors: `..., or {instead}`.

    Raises:
        MissingLibraryError: it is not installed.
        BrokenLibraryError: it is installed, but cannot be imported.
    """
    try:
        import pyonmttok
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "pyonmttok":
            raise MissingLibraryError(
                "pyonmttok is not installed: pip install pyonmttok (up to Python 3.12), "
                f"or {instead}"
            ) from None
        raise BrokenLibraryError(
            f"pyonmttok cannot be imported: {first_line(error)}; repair it, or {instead}"
        ) from error
    return pyonmttok
