"""Tables of the nonzeros that `sparsity.py` counts (Peters et al. 2019, Table 3)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from onmt_entmax.errors import counted
from onmt_entmax.files import write_files
from tools.papers.markdown import markdown_table
from tools.papers.sparsity import QUANTILES, Figures, Mode, Side, Summary
from tools.papers.text_table import Table

# Modes and sides of the figures, and what they are.
MODES: Mapping[Mode, str] = {
    "forced": "along the references",
    "predicted": "along the models' own outputs",
}
SIDES: Mapping[Side, str] = {"attention": "attended positions", "output": "possible tokens"}


def write_tables(figures: Mapping[str, Figures], stem: Path) -> None:
    """Write all figures as STEM.json, and the tables as STEM.md.

    Args:
        figures: figures by model.
        stem: path without ending.
    """
    texts = {".json": json.dumps(figures, indent=1) + "\n", ".md": markdown(figures)}
    write_files({Path(f"{stem}{ending}"): text for ending, text in texts.items()})


def number(value: float) -> str:
    """Format a count, or a mean of counts: only means below 1,000 have decimals."""
    return f"{value:,.0f}" if isinstance(value, int) or value >= 1000 else f"{value:.2f}"


def table3(figures: Mapping[str, Figures]) -> str:
    """Return mean nonzeros a step, as in the paper's Table 3, and the share of steps with one."""
    head = ["model"]
    for mode in MODES:
        for side in ("# attended", "# target tokens"):
            head += [f"{side}, {mode}", "just one"]
    rows = []
    for name, model in figures.items():
        cells = [model[mode][side] for mode in MODES for side in SIDES]
        texts = [(number(cell["mean"]), f"{cell['share_of_one']:.1%}") for cell in cells]
        rows.append([name, *(text for pair in texts for text in pair)])
    return markdown_table(Table(head, rows))


def markdown(figures: Mapping[str, Figures]) -> str:
    """Return all tables."""
    sentences = counted(next(iter(figures.values()))["sentences"], "sentence")
    modes = "; ".join(f"*{mode}*: {meaning}" for mode, meaning in MODES.items())
    parts = ["# Nonzeros per step", f"{sentences}. {modes} (beam search).", table3(figures)]
    for mode, meaning in MODES.items():
        for side in SIDES:
            summaries: dict[str, Summary] = {
                name: model[mode][side] for name, model in figures.items()
            }
            parts += [
                f"## {side.capitalize()}, {meaning}",
                _quantile_table(summaries),
                _mean_table("rank of the token", "by_rank", summaries),
                _mean_table("position", "by_position", summaries),
            ]
    return "\n\n".join(parts) + "\n"


def _quantile_table(summaries: Mapping[str, Summary]) -> str:
    """Return a table of quantiles of counts; `summaries` are by model."""
    head = ["model", "steps", *(f"{quantile} %" for quantile in QUANTILES), "most"]
    rows = []
    for name, summary in summaries.items():
        quantiles = [f"{value:,g}" for value in summary["quantiles"].values()]
        rows.append([name, str(summary["steps"]), *quantiles, number(summary["most"])])
    return markdown_table(Table(head, rows))


def _mean_table(
    title: str, key: Literal["by_rank", "by_position"], summaries: Mapping[str, Summary]
) -> str:
    """Return a table of means by rank or position, a column for each model."""
    rows = []
    groups = dict.fromkeys(group for summary in summaries.values() for group in summary[key])
    for group in groups:
        means = [summary[key].get(group) for summary in summaries.values()]
        rows.append([group, *("" if mean is None else number(mean["mean"]) for mean in means)])
    return markdown_table(Table([title, *summaries], rows))
