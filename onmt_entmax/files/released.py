"""Where the pretrained model is: in a checkout, an installed wheel, or fetched into the cache."""

import os
import site
import sysconfig
from pathlib import Path

from onmt_entmax.errors import UserError

PRETRAINED = "inflection-86"


def cache_folder() -> Path:
    """Return the folder of fetched models, by the XDG base directory specification."""
    root = os.environ.get("XDG_CACHE_HOME", "")
    # The specification ignores relative paths.
    cache = root if os.path.isabs(root) else os.path.expanduser("~/.cache")
    return Path(cache, "onmt_entmax", "models")


def pretrained() -> Path:
    """Return the folder of the pretrained model: a checkout's, the wheel's, or the fetched one.

    Raises:
        UserError: no folder has it; says what to do.
    """
    checkout = Path(__file__).resolve().parents[2] / "data" / "models"
    roots = (sysconfig.get_path("data"), site.getuserbase())
    installed = [Path(root, "share", "onmt_entmax", "models") for root in roots]
    for folder in (checkout, *installed, cache_folder()):
        if (folder / PRETRAINED).is_dir():
            return folder / PRETRAINED
    raise UserError(
        f"{installed[0] / PRETRAINED}: the pretrained model is missing, though the wheel has it; "
        "reinstall the package, or name another model (`inflect --model PATH`, `serve PATH`)"
    )
