"""Fonts that have the characters of a picture's texts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from matplotlib import font_manager

from onmt_entmax.errors import counted

USUAL = "DejaVu Sans"  # comes with matplotlib
SHOWN = 10  # missing characters that a warning names


def families_for(text: str) -> list[str]:
    """Return font families that have the characters of a text together, the usual one first.

    Characters that no font here has are warned of.
    """
    families = [USUAL]
    usual = font_manager.get_font(font_manager.findfont(USUAL)).get_charmap()
    missing = {sign for sign in text if ord(sign) not in usual and not sign.isspace()}
    for name, path in _other_fonts():
        if not missing:
            break
        try:
            charmap = font_manager.get_font(path).get_charmap()
        except (OSError, RuntimeError):  # a font that FreeType cannot read
            continue
        present = {sign for sign in missing if ord(sign) in charmap}
        if present:
            families.append(name)
            missing -= present
    if missing:
        shown = " ".join(sorted(missing)[:SHOWN])
        warnings.warn(
            f"no font here has {counted(len(missing), 'character')}: {shown}", stacklevel=3
        )
    return families


def _other_fonts() -> Iterator[tuple[str, str]]:
    """Yield family and path of the regular fonts of this system, in the order of their names."""
    for entry in sorted(font_manager.fontManager.ttflist, key=lambda font: font.name):
        is_regular = entry.style == "normal" and str(entry.weight) in ("400", "normal", "regular")
        # The last resort has a box for each character.
        if is_regular and "Last Resort" not in entry.name:
            yield entry.name, entry.fname
