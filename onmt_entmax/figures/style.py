"""How figures look and are written: small, for a column of a paper, as PDF and as PNG."""

from __future__ import annotations

import logging
import sys
import unicodedata
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onmt_entmax.errors import UserError
from onmt_entmax.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMN = 3.3  # inches: a column of a paper
PAGE = 6.9  # and its whole width
# Okabe and Ito's colours: told apart by every eye, and in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
INK = "#222222"
PICTURES = (".png", ".pdf", ".svg")
JOINER = "￭"  # pyonmttok's mark of subwords, which few fonts have
SOFT = "#888888"
_SETTINGS: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "figure.constrained_layout.use": True,
    "text.parse_math": False,  # a token may hold a dollar sign
    "pdf.fonttype": 42,  # letters stay letters, to be searched and edited
    "savefig.dpi": 220,
}


def prepare(texts: Iterable[str] = ()) -> None:
    """Load matplotlib and set the style, with fonts that can write `texts`.

    Raises:
        UserError: matplotlib is missing.
    """
    try:
        import matplotlib
    except ImportError:
        raise UserError('matplotlib is missing: pip install -e ".[plot]"') from None
    matplotlib.use("Agg")
    matplotlib.rcParams.update(_SETTINGS)
    matplotlib.rcParams["font.family"] = _families(frozenset("".join(texts).replace(JOINER, "")))


def _families(characters: frozenset[str]) -> list[str]:
    """Fonts that together have the characters; says in one line what no font here has."""
    from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

    families = ["DejaVu Sans"]
    charmap = get_font(findfont(FontProperties(family=families))).get_charmap()
    missing = {c for c in characters if ord(c) not in charmap and not c.isspace()}
    for entry in sorted(fontManager.ttflist, key=lambda entry: (entry.name, entry.fname)):
        if not missing:
            break
        regular = entry.style == "normal" and str(entry.weight) in ("400", "normal", "regular")
        if not regular or entry.name in families or "Last Resort" in entry.name:
            continue
        try:
            charmap = get_font(entry.fname).get_charmap()
        except (OSError, RuntimeError):  # a font that FreeType cannot read
            continue
        if found := {c for c in missing if ord(c) in charmap}:
            families.append(entry.name)
            missing -= found
    if missing:
        shown = " ".join(sorted(missing)[:10])
        print(
            f"note: no font here has {len(missing)} characters ({shown}), so boxes stand in their "
            "place; install a font that has them, such as Noto Sans",
            file=sys.stderr,
        )
    # It would say so glyph by glyph, and of fonts that have no bold letters.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    return families


def readable(token: str, longest: int = 18) -> str:
    """A token as a figure writes it: cut where it is very long, right-to-left letters in order."""
    token = token.replace(JOINER, "▪")
    if len(token) > longest:
        token = token[: longest - 1] + "…"
    import matplotlib

    # From 3.11 on matplotlib orders and joins letters itself.
    ordered = tuple(map(int, matplotlib.__version__.split(".")[:2])) >= (3, 11)
    if not ordered and any(unicodedata.bidirectional(c) in ("R", "AL") for c in token):
        return _from_right(token)
    return token


def _from_right(token: str) -> str:
    """A token of right-to-left letters as it is seen, from left to right.

    Marks stay behind the letter that they belong to; digits and Latin letters stay in order.
    """
    parts: list[str] = []
    for character in token:
        mark = unicodedata.combining(character) != 0
        if parts and (mark or (_is_forward(character) and _is_forward(parts[-1][0]))):
            parts[-1] += character
        else:
            parts.append(character)
    return "".join(reversed(parts))


def _is_forward(character: str) -> bool:
    """Whether a character is written from left to right, in whatever script it stands."""
    return unicodedata.bidirectional(character) in ("L", "EN", "AN")


def write_figure(figure: Figure, stem: Path) -> str:
    """Write `stem`.pdf and `stem`.png; returns their names.

    Raises:
        UserError: the place cannot be written.
    """
    from matplotlib import pyplot

    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in ("pdf", "png")]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        for path in paths:
            ending = path.suffix[1:]
            # The date is left out, so that the same command gives the same file.
            metadata = {"CreationDate": None} if ending == "pdf" else {"Software": None}

            def write(
                temporary: Path, ending: str = ending, metadata: dict[str, None] = metadata
            ) -> None:
                figure.savefig(temporary, format=ending, metadata=metadata, bbox_inches="tight")

            write_atomically(path, write)
    pyplot.close(figure)
    return ", ".join(map(str, paths))


def picture_format(path: Path) -> str:
    """What the name of a picture ends in.

    Raises:
        UserError: no format is called so.
    """
    if path.suffix.lower() not in PICTURES:
        raise UserError(f"{path}: a picture ends in {', '.join(PICTURES)}")
    return path.suffix[1:].lower()


def write_picture(figure: Figure, path: Path) -> None:
    """Write a figure in the one format that the name ends in, whole or not at all.

    Raises:
        UserError: no format is called so, a name cannot be drawn, or the place cannot be written.
    """
    ending = picture_format(path)
    try:
        write_atomically(path, lambda temporary: figure.savefig(temporary, format=ending, dpi=120))
    except UserError:  # the place
        raise
    except ValueError as error:  # dollar signs around what is no formula
        raise UserError(f"{path}: cannot be written ({' '.join(str(error).split())})") from None


def output_stem(path: Path) -> Path:
    """`--output` without an ending that says pdf or png: both are written."""
    return path.with_suffix("") if path.suffix in (".pdf", ".png") else path
