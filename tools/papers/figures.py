"""Draw the figures of Peters, Niculae and Martins (2019) for your models, as PDF and PNG.

    python -m tools.papers.figures attention run/mine --source "ein kleines haus" --output attention
    python -m tools.papers.figures forced run/mine --source "ein kleines haus" \\
        --target "a small house" --output forced
    python -m tools.papers.figures sweep run/mt/sweep --measure bleu --output sweep
    python -m tools.papers.figures time run/softmax run/entmax15 --names softmax 1.5-entmax \\
        --output time
    python -m tools.papers.figures curves run/softmax run/entmax15 --output curves
    python -m tools.papers.figures mappings --output mappings
    python -m tools.papers.figures sparsity run/softmax run/entmax15 --source val.de \\
        --target val.en --output sparsity

attention   attention weights; white is exactly zero (Figure 5). Without --target, along the model's
            own output.
forced      the possible tokens at each position of a target, with their probabilities; positions
            with only one are joined (Figure 2)
sweep       a measure over attention alpha and over output alpha (Figure 4), from folders of
            `tools.papers.tables`, run folders, or a CSV file with columns attention_alpha,
            output_alpha and the measure
time        a development measure over training time (Figure 6), from run folders; runs of the same
            name share a colour
curves      all measurements of training over updates, from run folders
mappings    the mappings for two and three classes (Figure 3; Martins and Astudillo 2016, Figures 1
            and 2)
sparsity    counts at each decoding step the source positions of nonzero attention and the tokens of
            nonzero probability, along the targets and along the model's own outputs (Table 3);
            prints the means, and writes OUTPUT.json, OUTPUT.md and the distributions. The frequency
            rank of a token is its place in the vocabulary.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from onmt_entmax.checkpoint import find_model, read_config
from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.data.batch import make_batch
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines, read_object, write_files
from onmt_entmax.report.lattice import Node, build_lattice
from onmt_entmax.rules import number, whole
from onmt_entmax.sparse import entmax
from onmt_entmax.translator import Translator
from tools.papers import sparsity
from tools.papers.pictures import (
    COLUMN,
    INK,
    PAGE,
    SOFT,
    Axes,
    Figure,
    measuring_figure,
    names_of,
    plain_numbers,
    prepare,
    pyplot,
    readable,
    stem_of,
    ticker,
    write,
)

LISTED = 8  # tokens listed in a column of forced decoding; the rest is summed
LINE = 0.155  # height of a line, inches
WARN = "#D55E00"
MEASURES = {  # the default is the first found
    "bleu": "BLEU",
    "accuracy": "accuracy (%)",
    "exact_match": "exact match (%)",
    "token_accuracy": "token accuracy (%)",
    "loss": "loss a token",
}
PANELS = {  # of `curves`: kind and name of a measurement
    ("train", "loss"): "training loss a token",
    ("valid", "loss"): "validation loss a token",
    ("valid", "exact_match"): "validation exact match (%)",
    ("valid", "bleu"): "validation BLEU",
    ("valid", "macro_accuracy"): "validation macro accuracy (%)",
    ("valid", "token_accuracy"): "validation token accuracy (%)",
    ("valid", "support"): "nonzero outputs a token",
    ("train", "learning_rate"): "learning rate",
}

# --- one sentence ----------------------------------------------------------------------------


class Sentence(NamedTuple):
    """A source, a target with its end symbol, and the model's distributions along the target."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    nodes: tuple[Node, ...]
    names: tuple[str, ...]  # the target vocabulary


def sentence(
    folders: Sequence[Path],
    source: str,
    target: str | None = None,
    transforms: Sequence[str] | None = None,
) -> Sentence:
    """Run models along a target, or along their own best output if there is none.

    Raises:
        UserError: a model cannot be read, the source is empty, or no output finished.
    """
    translator = Translator.from_folders(folders, transforms=transforms, attention=True)
    names = translator.vocabularies.target
    words, given = translator.reader.preprocess(source, target or "")
    if not words:
        raise UserError("--source: there is no word in it")
    if target is None:
        answer = next(translator.answers([source]))
        if not answer.hypotheses:
            raise UserError("no output of the model finished; give a --target")
        given = names.decode(answer.hypotheses[0].hypothesis.tokens)
    batch = make_batch([translator.reader.encode(words).example], translator.vocabularies)
    lattice = build_lattice(translator.stepper, batch, [names.encode(given)], limit=LISTED)
    # What a model writes from right to left is read from left to right all the same.
    order = -1 if translator.reader.backwards else 1
    tokens = (*given, "</s>")
    return Sentence(tuple(words), tokens[::order], lattice.nodes[::order], names.tokens)


def draw_attention(drawn: Sentence) -> Figure:
    """Draw attention as a heat map, rows for target tokens and columns for source tokens.

    Raises:
        UserError: the model has no attention.
    """
    if drawn.nodes[0].attention is None:
        raise UserError("the model has no attention")
    columns, lines = len(drawn.source), len(drawn.target)
    weights = np.array([node.attention for node in drawn.nodes])[:, :columns]
    cell = min(0.19, (PAGE - 1.5) / columns)
    figure, axis = pyplot.subplots(figsize=(cell * columns + 1.5, cell * lines + 0.9))
    heat_scale(figure, heat_map(axis, weights, drawn.target, drawn.source, cell), axis)
    return figure


def heat_map(
    axis: Axes, weights: Any, lines: Sequence[str], columns: Sequence[str], cell: float
) -> Any:
    """Draw attention weights `(lines, columns)`; only zero is white.

    Args:
        axis: to draw on.
        weights: of the tokens of `lines` to those of `columns`.
        lines: tokens that attend.
        columns: tokens that are attended to.
        cell: size of a cell in inches.

    Returns:
        The image, for `heat_scale`.
    """
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    size = max(4.0, min(8.0, cell * 72 * 0.62))
    # The palest blue must differ from white at a glance.
    blues = LinearSegmentedColormap.from_list("blues", ["#D9E8F5", "#5A9BD0", "#08306B"])
    image = axis.imshow(
        np.ma.masked_equal(weights, 0.0), cmap=blues, vmin=0, vmax=1, aspect="equal"
    )
    for line, column in zip(*weights.nonzero(), strict=True):
        corner = (column - 0.5, line - 0.5)
        axis.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=INK, linewidth=0.5))
    axis.set_xticks(range(len(columns)), [readable(t) for t in columns], rotation=90, fontsize=size)
    axis.set_yticks(range(len(lines)), [readable(t) for t in lines], fontsize=size)
    axis.tick_params(length=0, pad=3, top=True, labeltop=True, bottom=False, labelbottom=False)
    for spine in axis.spines.values():
        spine.set(visible=True, linewidth=0.4, color=SOFT)
    return image


def heat_scale(figure: Figure, image: Any, axis: Any) -> None:
    """Draw the scale of a heat map beside its axis, or beside several."""
    bar = figure.colorbar(image, ax=axis, fraction=0.04, pad=0.02, aspect=12, shrink=0.6)
    bar.set_ticks([0, 0.5, 1])
    bar.outline.set_linewidth(0.4)
    bar.ax.tick_params(length=2, labelsize=6.5)


class Entry(NamedTuple):
    """One line of a column of forced decoding: a token and its probability."""

    text: str
    share: str = ""
    gold: bool = False


def columns_of(drawn: Sentence) -> list[list[Entry]]:
    """Return the possible tokens at each target position.

    Positions without a choice are joined to a single entry without a share. A token that the model
    excludes has the share 0.
    """
    columns: list[list[Entry]] = []
    for token, node in zip(drawn.target, drawn.nodes, strict=True):
        gold = next(b for b in node.branches if b.child is not None or b.hypothesis is not None)
        if node.support == 1 and gold.log_prob > -math.inf:
            certain = columns and not columns[-1][0].share
            before = f"{columns.pop()[0].text} " if certain else ""
            columns.append([Entry(before + readable(token), gold=True)])
            continue
        entries = []
        for branch in node.branches:
            text = token if branch is gold else drawn.names[branch.token]  # may be unknown
            probability = math.exp(branch.log_prob)
            share = "0" if branch.log_prob == -math.inf else percent(probability)
            entries.append(Entry(readable(text), share, branch is gold))
        if node.others_count:
            entries.append(Entry(f"{node.others_count:,} more", percent(node.others)))
        columns.append(entries)
    return columns


def percent(probability: float) -> str:
    """Format a probability as the paper does."""
    return "<0.1%" if probability < 0.001 else f"{probability:.1%}"


def draw_forced(drawn: Sentence) -> Figure:
    """Draw forced decoding: columns of possible tokens, the given one in bold."""
    from matplotlib.lines import Line2D

    figure, width_of = measuring_figure()
    gap, left = 0.09, 0.0
    bands: list[list[tuple[list[Entry], float, float]]] = [[]]  # entries, left edge, width
    styles = [{"fontsize": 7.5, "weight": weight} for weight in ("normal", "bold")]
    for entries in columns_of(drawn):
        names, shares = (
            max(width_of(text, **styles[entry.gold]) for entry, text in texts)
            for texts in ([(e, e.text) for e in entries], [(e, e.share) for e in entries])
        )
        width = names + (shares + gap if shares else 0) + 2 * gap
        if left and left + width > PAGE:
            bands.append([])
            left = 0.0
        bands[-1].append((entries, left, width))
        left += width
    heights = [LINE * max(len(entries) for entries, _, _ in band) + 0.14 for band in bands]
    page = max(band[-1][1] + band[-1][2] for band in bands)
    height = top = sum(heights) + 0.16 * (len(bands) - 1)
    figure.set_size_inches(page, height)
    for band, tall in zip(bands, heights, strict=True):
        for entries, left, width in band:
            for side in (left, left + width):
                ends = [(top - tall) / height, top / height]
                figure.add_artist(Line2D([side / page] * 2, ends, color=SOFT, linewidth=0.5))
            for place, entry in enumerate(entries):
                y = (top - 0.07 - LINE * (place + 0.5)) / height
                style: dict[str, Any] = {**styles[entry.gold], "va": "center_baseline"}
                style["color"] = WARN if entry.share == "0" else INK
                figure.text((left + gap) / page, y, entry.text, **style)
                figure.text((left + width - gap) / page, y, entry.share, ha="right", **style)
        top -= tall + 0.16
    return figure


# --- runs ------------------------------------------------------------------------------------


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """Return the measurements of a run in order of time, each with its `kind` and `step`.

    An incomplete last line, left by a killed run, is ignored.

    Raises:
        UserError: the file cannot be read, or a line is no measurement.
    """
    path, rows = run / "metrics.jsonl", []
    lines = list(read_lines(path))
    for number_of_line, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            rows.append({**row, "kind": str(row["kind"]), "step": int(row["step"])})
        except (ValueError, KeyError, TypeError):
            if number_of_line < len(lines):
                raise UserError(f"{path}:{number_of_line}: not a measurement") from None
    return rows


def series(rows: Sequence[Mapping[str, Any]], kind: str, name: str, over: str = "step") -> Any:
    """Return steps (or another key) and values of one measurement."""
    chosen = [row for row in rows if row["kind"] == kind and name in row and over in row]
    return [row[over] for row in chosen], [row[name] for row in chosen]


def draw_curves(runs: Sequence[Path], names: Sequence[str]) -> Figure:
    """Draw a panel for each measurement of the runs.

    Raises:
        UserError: measurements cannot be read, or none of them is drawn.
    """
    measured = [read_metrics(run) for run in runs]
    shown = [panel for panel in PANELS if any(series(rows, *panel)[0] for rows in measured)]
    if not shown:
        raise UserError(f"{', '.join(map(str, runs))}: nothing that can be drawn was measured")
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    size = (3.4 * columns, 2.4 * lines)
    figure, axes = pyplot.subplots(lines, columns, figsize=size, squeeze=False)
    for panel, axis in zip(shown, axes.flat, strict=False):
        points = [series(rows, *panel) for rows in measured]
        for name, (steps, values) in zip(names, points, strict=True):
            axis.plot(steps, values, label=name, marker="o" if panel[0] == "valid" else "")
        axis.set_title(PANELS[panel])
        axis.set_xlabel("step")
        axis.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))  # 100k is shorter than 100000
        axis.grid()
        least, most = (choose(v for _, values in points for v in values) for choose in (min, max))
        if panel[1] in ("loss", "support") and most > 10 * least > 0:
            axis.set_yscale("log")
            plain_numbers(axis)
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    handles = axes.flat[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=columns)
    return figure


def choose_measure(rows: Sequence[Mapping[str, Any]], measure: str | None, where: object) -> str:
    """Return the measure, or by default the first in `MEASURES` that every row has.

    Raises:
        UserError: no row has it.
    """
    if measure is None:
        measure = next((m for m in MEASURES if all(m in row for row in rows)), None)
    if measure is None or not any(measure in row for row in rows):
        raise UserError(f"{where}: no {measure or ', '.join(MEASURES)} in it; see --measure")
    return measure


def sweep_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield rows of alphas and measures from a CSV file, figures.json files or a run folder.

    Raises:
        UserError: a file cannot be read.
    """
    if not path.is_dir():
        yield from csv.DictReader(read_lines(path))
        return
    for file in sorted(path.rglob("figures.json")):
        if file.parent.name != "ensemble":
            yield read_object(file)
    if (path / "metrics.jsonl").is_file():
        model = find_model(path)
        config = read_config(model)[0]
        step = int(model.name.removeprefix("step_"))
        measured = [r for r in read_metrics(path) if (r["kind"], r["step"]) == ("valid", step)]
        alphas = {"attention_alpha": config.source_attention_alpha}
        alphas["output_alpha"] = config.generator_alpha
        yield {**(measured[0] if measured else {}), **alphas}


def draw_sweep(
    paths: Sequence[Path], measure: str | None, label: str | None, fixed: float
) -> Figure:
    """Draw a measure over attention alpha, and over output alpha, in two panels.

    Args:
        paths: of the trainings. The line is the mean over seeds, which are dots.
        measure: its name; None takes the first found.
        label: of the vertical axis.
        fixed: value of the other alpha.

    Raises:
        UserError: there is no training with this value, or a row lacks a number.
    """
    rows = [row for path in paths for row in sweep_rows(path)]
    measure = choose_measure(rows, measure, paths[0]) if rows else ""
    try:
        points = [
            tuple(float(row[key]) for key in ("attention_alpha", "output_alpha", measure))
            for row in rows
        ]
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"{paths[0]}: a row without attention_alpha, output_alpha and {measure} as numbers"
        ) from None
    panels = {
        "attention α": [(a, value) for a, o, value in points if o == fixed],
        "output α": [(o, value) for a, o, value in points if a == fixed],
    }
    if not any(panels.values()):
        raise UserError(f"{paths[0]}: no training with attention or output alpha {fixed:g}")
    figure, axes = pyplot.subplots(1, 2, figsize=(COLUMN, 1.65), sharey=True)
    for axis, colour, (name, pairs) in zip(axes, ("C0", "C1"), panels.items(), strict=True):
        alphas = sorted({alpha for alpha, _ in pairs})
        means = [np.mean([value for a, value in pairs if a == alpha]) for alpha in alphas]
        axis.plot(alphas, means, color=colour, marker="o")
        if len(pairs) > len(alphas):
            axis.plot(*zip(*pairs, strict=True), color=colour, ls="", marker=".", alpha=0.35)
        axis.set_xlabel(name)
        axis.set_xticks([1, 1.5, 2] if alphas and alphas[-1] <= 2.5 else alphas)
        axis.yaxis.set_major_locator(ticker.MaxNLocator(4))
        axis.grid(axis="y")
        axis.margins(y=0.15)
    axes[0].set_ylabel(label or MEASURES.get(measure, measure))
    return figure


def draw_time(
    runs: Sequence[Path], names: Sequence[str], measure: str | None, label: str | None
) -> Figure:
    """Draw a development measure over training time; the first run of each name has markers.

    Raises:
        UserError: a run has no measurements, or not this one.
    """
    measured = [[row for row in read_metrics(run) if row["kind"] == "valid"] for run in runs]
    measure = choose_measure([row for rows in measured for row in rows], measure, runs[0])
    curves = [series(rows, "valid", measure, "seconds") for rows in measured]
    for run, (_, values) in zip(runs, curves, strict=True):
        if not values:
            raise UserError(f"{run}: no {measure} was measured on a development set yet")
    longest = max(seconds[-1] for seconds, _ in curves)
    units = (("hours", 3600), ("minutes", 60), ("seconds", 1))
    unit, size = next((u, s) for u, s in units if longest > 2 * s or s == 1)
    figure, axis = pyplot.subplots(figsize=(COLUMN, 2.2))
    different = list(dict.fromkeys(names))
    for index, (name, (seconds, values)) in enumerate(zip(names, curves, strict=True)):
        place, again = different.index(name), name in names[:index]
        axis.plot(
            [second / size for second in seconds],
            values,
            color=f"C{place}",
            marker="" if again else "osD^vP*"[place % 7],
            label=None if again else name,
        )
    axis.set_xlabel(f"{unit} of training")
    axis.set_ylabel(f"development {label or MEASURES.get(measure, measure)}")
    axis.set_xlim(left=0)
    axis.xaxis.set_major_locator(ticker.MaxNLocator(6))
    axis.grid(axis="y")
    axis.legend()  # where it hides the least
    return figure


# --- mappings --------------------------------------------------------------------------------


def draw_mappings(alphas: Sequence[float]) -> Figure:
    """Draw the curves of `alphas` in two dimensions, and softmax and sparsemax in three.

    Dots mark saturation, at t = 1 / (alpha - 1); dashed lines divide regions by size of support.
    """
    figure, (curves, *surfaces) = pyplot.subplots(1, 3, figsize=(PAGE, 2.2))
    names = {1.0: "softmax", 2.0: "sparsemax"}
    t = torch.linspace(-4.5, 4.5, 901).double()
    for n, alpha in enumerate(alphas):
        first = entmax(torch.stack([t, torch.zeros_like(t)], 1), alpha)[:, 0]
        curves.plot(t, first, color=f"C{n}", label=names.get(alpha, f"alpha {alpha:g}"))
        if alpha > 1 and (end := 1 / (alpha - 1)) <= 4.5:
            curves.plot([-end, end], [0, 1], "o", color=f"C{n}")
    curves.set(title="two classes, scores (t, 0)", xlabel="t", ylabel="first probability")
    curves.legend(loc="upper left", handlelength=0.8, borderaxespad=0)
    t = torch.linspace(-3, 3, 301).double()
    one, two = torch.meshgrid(t, t, indexing="xy")
    for axis, alpha in zip(surfaces, names, strict=True):
        p = entmax(torch.stack([one, two, torch.zeros_like(one)], 2), alpha)
        filled = axis.contourf(one, two, p[..., 0], [n / 10 for n in range(11)], cmap="Blues")
        if alpha > 1:
            style: dict[str, Any] = {"colors": SOFT, "linewidths": 0.8, "linestyles": "--"}
            axis.contour(one, two, (p > 0).sum(2), [1.5, 2.5], **style)
            places = [(2.1, -1.5, 1), (-1.5, 2.1, 1), (-2, -2, 1), (1.6, 1.6, 2), (-2, 0, 2)]
            for x, y, count in [*places, (0, 0, 3)]:
                colour = "white" if x > 2 else INK
                axis.text(x, y, str(count), ha="center", va="center", color=colour)
        axis.set(title=f"{names[alpha]}, scores (t1, t2, 0)", xlabel="t1", ylabel="t2")
        axis.set_aspect("equal")
    ticks = [0, 0.2, 0.4, 0.6, 0.8, 1]
    figure.colorbar(filled, ax=surfaces, label="first probability", ticks=ticks)
    return figure


# --- the command -----------------------------------------------------------------------------


def draw(options: argparse.Namespace) -> Figure:
    """Draw the figure that the command line names; `sparsity` also writes its tables."""
    if options.command == "mappings":
        return draw_mappings(options.alphas)
    if options.command == "sweep":
        return draw_sweep(options.models, options.measure, options.label, options.fixed)
    if options.command in ("attention", "forced"):
        drawn = sentence(options.models, options.source, options.target, options.transforms)
        listed = {branch.token for node in drawn.nodes for branch in node.branches}
        prepare([*drawn.source, *drawn.target, *(drawn.names[token] for token in listed)])
        return {"attention": draw_attention, "forced": draw_forced}[options.command](drawn)
    names = names_of(options, different=options.command != "time" or not options.names)
    prepare(names)
    if options.command == "time":
        return draw_time(options.models, names, options.measure, options.label)
    if options.command == "curves":
        return draw_curves(options.models, names)
    keys = ("source", "target", "transforms", "limit", "beam_size", "batch_size")
    arguments = {key: getattr(options, key) for key in keys}
    figures = {
        name: sparsity.measure(folder, **arguments)
        for name, folder in zip(names, options.models, strict=True)
    }
    print(sparsity.table3(figures))
    stem = stem_of(options.output)
    texts = {".json": json.dumps(figures, indent=1) + "\n", ".md": sparsity.markdown(figures)}
    write_files({Path(f"{stem}{ending}"): text for ending, text in texts.items()})
    return sparsity.draw(figures)


def compare_arguments(add: Any) -> None:
    """Add the arguments of a command that compares models on parallel text."""
    add("models", nargs="+", type=Path, metavar="MODEL", help="run or model folders to compare")
    add("--names", nargs="+", metavar="NAME", help="names of the models (default: folder names)")
    add("--source", type=Path, required=True, metavar="FILE")
    add("--target", type=Path, required=True, metavar="FILE")
    add("--transforms", nargs="*", help="transforms of both files, instead of training's subwords")
    add("--limit", type=whole(1, 10**9), metavar="N", help="read the first N sentences")


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True, dest="command")
    alpha: Any = number(1, 10**6)
    for name in ("attention", "forced", "sweep", "time", "curves", "mappings", "sparsity"):
        add: Any = commands.add_parser(name).add_argument
        if name in ("attention", "forced"):
            add("models", nargs="+", type=Path, metavar="MODEL", help="several are averaged")
            add("--source", required=True, metavar="TEXT")
            add("--target", required=name == "forced", metavar="TEXT")
            add("--transforms", nargs="*", help="of both texts, instead of training's subwords")
        elif name == "sparsity":
            compare_arguments(add)
            add("--beam_size", type=whole(1, 10_000), default=5, metavar="N")
            add("--batch_size", type=whole(1, 10**7), default=64, metavar="N")
        elif name == "mappings":
            add("--alphas", nargs="+", type=alpha, default=[1, 1.25, 1.5, 2, 4], metavar="ALPHA")
        else:
            add("models", nargs="+", type=Path, metavar="RUN", help="folders (sweep: or CSV files)")
        if name in ("time", "curves"):
            add("--names", nargs="+", metavar="NAME", help="of the runs (default: folder names)")
        if name in ("sweep", "time"):
            add("--measure", help="such as bleu, token_accuracy (default: the first found)")
            add("--label", help="label of the vertical axis")
        if name == "sweep":
            add("--fixed", type=alpha, default=1.5, help="value of the other alpha (default 1.5)")
        add("--output", type=Path, required=True, help="path without .pdf and .png")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Draw a figure; return the exit status."""
    options = parse_arguments(arguments)
    prepare()
    print(write(draw(options), options.output))
    return 0


if __name__ == "__main__":
    run_script(main)
