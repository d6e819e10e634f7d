"""Draw the training curves of runs, from their metrics.jsonl. Needs matplotlib.

python tools/plot_run.py run/pilot/model run/pilot/softmax --output run/pilot/curves.png
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.errors import UserError
from onmt_entmax.figures.curves import plot


def main(arguments: Sequence[str]) -> int:
    """Draw the curves; return the exit status."""
    parser = argument_parser(__doc__)
    parser.add_argument("runs", nargs="+", type=Path, help="run folders")
    parser.add_argument("--names", nargs="+", help="names for the legend (default: the paths)")
    parser.add_argument("--output", type=Path, required=True, help="picture, .png, .pdf or .svg")
    options = parser.parse_args(arguments)
    names = options.names or [str(run) for run in options.runs]
    if len(names) != len(options.runs):
        raise UserError(f"--names: {len(names)} names for {len(options.runs)} runs")
    plot(options.runs, names, options.output)
    return 0


if __name__ == "__main__":
    run_script(main)
