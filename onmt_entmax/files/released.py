"""Find the pretrained model: in a checkout, in an installed wheel, or in the cache folder."""

import os
import site
import sysconfig
from pathlib import Path

from onmt_entmax.errors import UserError

PRETRAINED = "inflection-86"


def cache_folder() -> Path:
    """Return the folder for fetched models, as the XDG base directory specification says."""
    root = os.environ.get("XDG_CACHE_HOME", "")
    # The specification ignores relative paths.
    cache = root if os.path.isabs(root) else os.path.expanduser("~/.cache")
    return Path(cache, "onmt_entmax", "models")


def pretrained() -> Path:
    """Return the folder of the pretrained model: a checkout's, the wheel's, or the fetched one.

    Raises:
        UserError: no folder has it; the message says what to do.
    """
    root = Path(__file__).resolve().parents[2]  # of a checkout; an installation's site-packages
    checkout = root / "data" / "models"
    prefixes = (sysconfig.get_path("data"), site.getuserbase())
    installed = [Path(prefix, "share", "onmt_entmax", "models") for prefix in prefixes]
    for folder in (checkout, *installed, cache_folder()):
        if (folder / PRETRAINED).is_dir():
            return folder / PRETRAINED
    if (root / "pyproject.toml").is_file():
        missing, restore = checkout, "restore it (`git restore data/models`)"
    else:
        missing, restore = installed[0], "reinstall the package, whose wheel has it"
    raise UserError(
        f"{missing / PRETRAINED}: the pretrained model is missing; {restore}, fetch it "
        "(`onmt-entmax fetch-model -h`), or name another model (`inflect --model PATH`, "
        "`serve PATH`)"
    )
