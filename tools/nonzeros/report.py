"""Tables and the picture of what `sparsity.py` has measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pictures.style import COLOURS, PAGE, SOFT

from nonzeros.counts import LAST_POSITION, QUANTILES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MODES = {"forced": "along the references", "predicted": "along the models' own outputs"}
SIDES = {"attention": "# attended", "output": "# target tokens"}
WIDE = 50  # where counts go beyond, axes are logarithmic
FEW = 30  # a mean over fewer steps is not drawn


def number(value: float) -> str:
    """A count or mean with as many digits as say something."""
    return f"{value:,.0f}" if isinstance(value, int) or value >= 1000 else f"{value:.2f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def table3(figures: Mapping[str, Any]) -> str:
    """Mean nonzeros a step, as in the paper's Table 3, and the share of steps with one."""
    head = ["model"]
    for mode in ("forced", "predicted"):
        for side in SIDES.values():
            head += [f"{side}, {mode}", "just one"]
    rows = []
    for name, model in figures.items():
        row = [name]
        for mode in MODES:
            for side in SIDES:
                found = model[mode][side]
                row += [number(found["mean"]), f"{found['share_of_one']:.1%}"]
        rows.append(row)
    return _table(head, rows)


def markdown(figures: Mapping[str, Any]) -> str:
    """All tables."""
    first = next(iter(figures.values()))
    parts = [
        "# Nonzeros a step",
        f"{first['sentences']} sentences. *Forced*: along the references; *predicted*: along the "
        "models' own outputs (beam search). Attention counts source positions, output the tokens "
        "of the target vocabulary.",
        table3(figures),
    ]
    for mode, said in MODES.items():
        for side in ("attention", "output"):
            measured = {name: model[mode][side] for name, model in figures.items()}
            parts += [f"## {side.capitalize()}, {said}", *_details(measured)]
    return "\n\n".join(parts) + "\n"


def _details(measured: Mapping[str, Any]) -> list[str]:
    """Quantiles, and means by frequency and by position, of one side in one mode."""
    quantiles = [
        [name, str(m["steps"]), number(m["least"])]
        + [f"{m['quantiles'][str(q)]:,g}" for q in QUANTILES]
        + [number(m["most"])]
        for name, m in measured.items()
    ]
    tables = [
        _table(["model", "steps", "least", *(f"{q} %" for q in QUANTILES), "most"], quantiles)
    ]
    for key, said in (("by_rank", "rank of the token"), ("by_position", "position")):
        cells = dict.fromkeys(cell for m in measured.values() for cell in m[key])
        rows = [
            [cell if cell != str(LAST_POSITION) or key == "by_rank" else f"{cell} and later"]
            + [number(m[key][cell]["mean"]) if cell in m[key] else "" for m in measured.values()]
            for cell in cells
        ]
        tables.append(_table([said, *measured], rows))
    return tables


def draw(figures: Mapping[str, Any]) -> Figure:
    """The picture, of forced decoding: distribution, by position, by frequency; attention above,
    output below."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 3, figsize=(PAGE, 3.7))
    for line, side in zip(axes, ("attention", "output"), strict=True):
        measured = {name: model["forced"][side] for name, model in figures.items()}
        _distribution(line[0], measured)
        _by_position(line[1], measured)
        _by_rank(line[2], measured)
        noun = {"attention": "attended positions", "output": "possible tokens"}[side]
        line[0].set_xlabel(noun)
        line[0].set_ylabel("share of steps with\nat most so many")
        line[1].set_ylabel(f"{noun},\nmean")
        wide = any(m["most"] > WIDE for m in measured.values())
        if wide:
            line[0].set_xscale("log")
        for axis in line[1:]:
            axis.set_yscale("log" if wide else "linear")
            axis.set_ylim(bottom=0.9 if wide else 0)
            axis.grid(axis="y", color=SOFT, alpha=0.25, linewidth=0.5)
        for axis in line:
            _plain_numbers(axis)
    axes[1, 1].set_xlabel("position in the target")
    axes[1, 2].set_xlabel("frequency rank of the target token")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 5))
    return figure


def _plain_numbers(axis: Axes) -> None:
    """1, 10, 100 instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for side in (axis.xaxis, axis.yaxis):
        if side.get_scale() == "log":
            side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            side.set_minor_formatter(NullFormatter())


def _distribution(axis: Axes, measured: Mapping[str, Any]) -> None:
    most = max(m["most"] for m in measured.values())
    for colour, (name, m) in zip(_colours(measured), measured.items(), strict=True):
        points = [(int(count), share) for count, share in m["at_most"].items()]
        counts, shares = [1, *(c for c, _ in points), most], [0.0, *(s for _, s in points), 1.0]
        if points[0][0] == 1:
            counts, shares = counts[1:], shares[1:]
        axis.step(counts, shares, where="post", color=colour, label=name)
    axis.set_ylim(0, 1.03)


def _by_position(axis: Axes, measured: Mapping[str, Any]) -> None:
    for colour, m in zip(_colours(measured), measured.values(), strict=True):
        found = [
            (int(position), cell["mean"])
            for position, cell in m["by_position"].items()
            if cell["steps"] >= FEW and int(position) < LAST_POSITION
        ]
        axis.plot([p for p, _ in found], [mean for _, mean in found], color=colour)


def _by_rank(axis: Axes, measured: Mapping[str, Any]) -> None:
    names = list(
        dict.fromkeys(
            name
            for m in measured.values()
            for name, cell in m["by_rank"].items()
            if cell["steps"] >= FEW
        )
    )
    for colour, m in zip(_colours(measured), measured.values(), strict=True):
        places = [i for i, name in enumerate(names) if name in m["by_rank"]]
        means = [m["by_rank"][names[i]]["mean"] for i in places]
        axis.plot(places, means, color=colour, linestyle="", marker="o")
    labels = [name.replace("-", "–") for name in names]
    axis.set_xticks(range(len(names)), labels, rotation=30, ha="right", rotation_mode="anchor")
    axis.set_xlim(-0.5, max(len(names), 1) - 0.5)


def _colours(measured: Mapping[str, Any]) -> list[str]:
    return [COLOURS[i % len(COLOURS)] for i in range(len(measured))]
