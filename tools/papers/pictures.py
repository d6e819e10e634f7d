"""Style and files of pictures: sized for a column or page of a paper, written as PDF and PNG."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from onmt_entmax.errors import UserError
from onmt_entmax.files import write_files
from tools.papers.fonts import families_for
from tools.papers.plotting import Figure, cycler, matplotlib, pyplot

COLUMN = 3.3  # width of a column of a paper, inches
PAGE = 6.9  # width of its page
# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
INK = "#222222"
SOFT = "#888888"
JOINER = "￭"  # pyonmttok's subword mark, which few fonts have
_SETTINGS: dict[Any, Any] = {
    # Sizes of text, in points.
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    # Colours.
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.prop_cycle": cycler(color=COLOURS),
    # Lines.
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "grid.color": SOFT,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    # Layout and files.
    "figure.constrained_layout.use": True,
    "text.parse_math": False,  # a token may contain a dollar sign
    "pdf.fonttype": 42,  # text stays searchable
    "savefig.dpi": 220,
}


def set_style(texts: Iterable[str] = ()) -> None:
    """Set the style of all figures from now on, with fonts that have the characters of `texts`."""
    pyplot.switch_backend("Agg")  # which writes files
    matplotlib.rcParams.update(_SETTINGS)
    # It warns of fonts that have no bold letters.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    characters = "".join(texts).replace(JOINER, "")  # `readable` replaces it
    matplotlib.rcParams["font.family"] = families_for(characters)


def stem_of(output: Path) -> Path:
    """Return the path of a picture's files without .pdf or .png.

    Raises:
        UserError: it names no file.
    """
    if not output.name:  # such as the current folder
        raise UserError(f"{output}: names no file")
    return output.with_suffix("") if output.suffix in (".pdf", ".png") else output


def write(figure: Figure, output: Path) -> str:
    """Write a figure as `output` with .pdf and .png; return both names.

    Raises:
        UserError: they cannot be written.
    """
    stem = stem_of(output)
    pictures: dict[Path, str | bytes] = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        # Without the date, the same command gives the same file.
        for kind, metadata in {"pdf": {"CreationDate": None}, "png": {"Software": None}}.items():
            content = io.BytesIO()
            figure.savefig(content, format=kind, metadata=metadata, bbox_inches="tight")
            pictures[stem.with_name(f"{stem.name}.{kind}")] = content.getvalue()
    write_files(pictures)
    pyplot.close(figure)
    return ", ".join(map(str, pictures))


def readable(token: str, longest: int = 18) -> str:
    """Return a token as a picture shows it."""
    token = token.replace(JOINER, "▪")
    return token if len(token) <= longest else token[: longest - 1] + "…"


def measuring_figure() -> tuple[Figure, Callable[..., float]]:
    """Return an empty figure, and a function from a text and its style to its width in inches."""
    # At the final resolution: hinting makes widths depend on it.
    figure = pyplot.figure(layout="none", dpi=pyplot.rcParams["savefig.dpi"])
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]

    def width_of(text: str, **style: Any) -> float:
        artist = figure.text(0, 0, text, **style)
        width = artist.get_window_extent(renderer).width / figure.dpi if text else 0.0
        artist.remove()
        return float(width)

    return figure, width_of
