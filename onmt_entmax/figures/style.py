"""Style and files of figures: sized for a column of a paper, written as PDF and PNG."""

from __future__ import annotations

import io
import logging
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import write_files

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

COLUMN = 3.3  # width of a column of a paper, inches
PAGE = 6.9  # width of its page
# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
INK = "#222222"
JOINER = "￭"  # pyonmttok's subword mark, which few fonts have
SOFT = "#888888"
# Without the date, the same command gives the same file.
_METADATA = {"pdf": {"CreationDate": None}, "png": {"Software": None}}
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
    "grid.color": SOFT,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "figure.constrained_layout.use": True,
    "text.parse_math": False,  # a token may contain a dollar sign
    "pdf.fonttype": 42,  # text stays searchable
    "savefig.dpi": 220,
}


def prepare(texts: Iterable[str] = ()) -> None:
    """Load matplotlib and set the style, with fonts that have the characters of `texts`.

    Raises:
        UnicodeEncodeError: an argument was not UTF-8.
    """
    import matplotlib
    from cycler import cycler

    matplotlib.use("Agg")  # which writes files
    characters = "".join(texts).replace(JOINER, "")
    characters.encode()  # matplotlib's own error does not name the text
    matplotlib.rcParams.update(_SETTINGS)
    matplotlib.rcParams["axes.prop_cycle"] = cycler(color=COLOURS)
    matplotlib.rcParams["font.family"] = _families(frozenset(characters))


def _families(characters: frozenset[str]) -> list[str]:
    """Return fonts that together have the characters; print a note on those that no font has."""
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
            f"note: no font here has {counted(len(missing), 'character')} ({shown}): boxes stand "
            "there; install a font that has them, such as Noto Sans",
            file=sys.stderr,
        )
    # matplotlib would warn about each glyph, and about fonts without bold letters.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    return families


def readable(token: str, longest: int = 18) -> str:
    """Return a token as a figure shows it: shortened, right-to-left letters in visual order."""
    token = token.replace(JOINER, "▪")
    if len(token) > longest:
        token = token[: longest - 1] + "…"
    import matplotlib

    # matplotlib 3.11 and later order and join letters.
    ordered = tuple(map(int, matplotlib.__version__.split(".")[:2])) >= (3, 11)
    if not ordered and any(unicodedata.bidirectional(c) in ("R", "AL") for c in token):
        return _from_right(token)
    return token


def _from_right(token: str) -> str:
    """Return a token of right-to-left letters in visual order.

    Marks stay after their letters; digits and Latin letters keep their order.
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
    """Return whether a character is always written from left to right."""
    return unicodedata.bidirectional(character) in ("L", "EN", "AN")


def picture_paths(stem: Path) -> list[Path]:
    """Return the files of a figure: `stem`.pdf and `stem`.png."""
    return [stem.with_name(f"{stem.name}.{ending}") for ending in _METADATA]


def write_figure(figure: Figure, stem: Path) -> str:
    """Write `stem`.pdf and `stem`.png; return their names.

    Raises:
        UserError: they cannot be written.
    """
    from matplotlib import pyplot

    pictures = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        for path, (ending, own) in zip(picture_paths(stem), _METADATA.items(), strict=True):
            content = io.BytesIO()
            figure.savefig(content, format=ending, metadata=own, bbox_inches="tight")
            pictures[path] = content.getvalue()
    write_files(pictures)
    pyplot.close(figure)
    return ", ".join(map(str, pictures))


def model_names(models: Sequence[Path], names: Sequence[str] | None) -> list[str]:
    """Return a different name for each model to compare: those given, else of the folders.

    Raises:
        UserError: they are not as many as the models, or not different.
    """
    found = list(names or [path.name for path in models])
    if len(found) != len(models):
        raise UserError(
            f"--names: {counted(len(found), 'name')} for {counted(len(models), 'model')}"
        )
    if len(set(found)) < len(found):
        raise UserError("--names: the models need different names")
    return found


def measuring_figure() -> tuple[Figure, Callable[..., float]]:
    """Return an empty figure, and a function from a text and its style to its width in inches."""
    from matplotlib import pyplot

    # At the final resolution: hinting makes widths depend on it.
    figure = pyplot.figure(layout="none", dpi=pyplot.rcParams["savefig.dpi"])
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]

    def width_of(text: str, **style: Any) -> float:
        drawn = figure.text(0, 0, text, **style)
        width = drawn.get_window_extent(renderer).width / figure.dpi if text else 0.0
        drawn.remove()
        return float(width)

    return figure, width_of


def plain_numbers(axis: Axes) -> None:
    """Label logarithmic axes with 1, 10, 100, since powers of ten would be formulas.

    An axis of less than two decades has 2 and 5 between them.
    """
    from matplotlib.ticker import FuncFormatter

    for side in (axis.xaxis, axis.yaxis):
        if side.get_scale() == "log":

            def between(value: float, _: int, side: Axis = side) -> str:
                least, most = side.get_view_interval()
                short = most < 100 * least and f"{value:e}"[0] in "25"
                return f"{value:,g}" if short else ""

            side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            side.set_minor_formatter(FuncFormatter(between))


def check_folder(out: Path) -> None:
    """Check `--out`, a folder to write to or to create.

    Raises:
        UserError: it is something else.
    """
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out}: is not a folder")


def output_stem(path: Path) -> Path:
    """Return `--output` without .pdf or .png, since both are written.

    Raises:
        UserError: it names no file.
    """
    if not path.name:  # such as the current folder
        raise UserError(f"--output {path}: names no file")
    return path.with_suffix("") if path.suffix in (".pdf", ".png") else path
