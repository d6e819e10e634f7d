"""Check and time training on a GPU, beside stock OpenNMT-py.

    python -m tools.bench.gpu --quick

The checks compare kernels with float64 on the CPU, and CUDA graphs with plain updates. The tables
time training steps of this project (packed, padded, padded with CUDA graphs) and of stock
OpenNMT-py with softmax on the same batches, then losses, mappings and attention, beside entmax 1.3
and AdaSplash where they are installed, the LSTM encoder beside cuDNN's, and decoding. A step copies
the batch to the GPU and runs forward and backward pass, clipping and fused Adam, with the GPU
synchronised around it. Times are medians in milliseconds. Each contender trains before it is timed,
since the cost of entmax depends on the support. The alphas of a Transformer are those of its
attention; its output is softmax. Decoding lists all words whose output or certificate differs from
the CPU's.

`--device cpu --quick` is a smoke test with small models. Everything goes to a JSON file
(`--output`), the tables to one screen. If a part leaves the GPU unusable, a new process runs the
rest.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.files import write_text
from onmt_entmax.sparse import backends
from tools.bench.attention import table as time_attention
from tools.bench.gpu_checks import check_graphs, check_loss, check_updates
from tools.bench.gpu_steps import SIZES, SMALL, Device, Result, Size, data_of, time_steps
from tools.bench.gpu_tables import time_decoding, time_encoder, time_losses, time_mappings

LOSSES = "loss, forward and backward, over cross-entropy"
MAPPINGS = "mapping, forward and backward, over softmax"
ENCODER = "LSTM encoder, forward and backward, over torch.nn.LSTM on padded batches"
DECODING = "decoding, 2x512, beam 5; the CPU's outputs and certificates"


class Bench:
    """Runs the parts of the benchmark and keeps their rows.

    Args:
        options: of the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.device = device = Device(options.device)
        self.failed = False
        self._started = time.monotonic()
        name = torch.cuda.get_device_name() if device.is_gpu else "CPU"
        quick = options.quick
        self.results: dict[str, Any] = {
            "device": name,
            "torch": torch.__version__,
            "quick": quick,
        }
        sizes = SIZES if device.is_gpu else SMALL
        small = (SIZES[0], SMALL[-1]) if device.is_gpu else SMALL
        updates = (check for size in small for check in check_updates(device, size))
        graphs = (check_graphs(device, size, data_of(size, 6)) for size in sizes[-3:])
        steps = {f"steps-{n}": partial(self._steps, size) for n, size in enumerate(sizes, 1)}
        attention = time_attention(device.device, quick, 0.5 if quick else 2.0, "wall")
        self.parts: dict[str, Callable[[], None]] = {
            "checks-loss": partial(self._checks, "loss", check_loss(device, quick)),
            "checks-updates": partial(self._checks, "updates", updates),
            "checks-graphs": partial(self._checks, "graphs", graphs),
            **steps,
            "losses": partial(self._table, "losses", time_losses(device, quick), LOSSES),
            "mappings": partial(self._table, "mappings", time_mappings(device, quick), MAPPINGS),
            "attention": partial(self._table, "attention", attention),
            "encoder": partial(self._table, "encoder", time_encoder(device, quick), ENCODER),
            "decoding": partial(self._table, "decoding", time_decoding(device, quick), DECODING),
        }

    def run(self, names: Sequence[str]) -> None:
        """Run parts by name."""
        length = "quick" if self.options.quick else "full"
        print(f"{self.results['device']}, torch {self.results['torch']}, {length}")
        for done, name in enumerate(names, 1):
            self.parts[name]()
            self._save()
            print(f"  ({self.results['seconds']:.0f} s)", flush=True)
            if not self.device.works():
                self.failed = True
                self._run_beside(names[done:])
                return
        probe = torch.zeros(1, 2, device=self.device.device)
        if self.device.is_gpu and backends.of(probe, 1.5) is backends.reference:
            self.failed = True
            print("FAILED: a kernel; PyTorch did the work of all from then on (see the warning)")

    def _run_beside(self, names: Sequence[str]) -> None:
        """Run parts in a new process: some errors of a GPU last as long as the process."""
        if not names:
            return
        print(f"The GPU fails in this process; a new one runs {', '.join(names)}", flush=True)
        with TemporaryDirectory() as folder:
            output = Path(folder) / "results.json"
            command = [sys.executable, "-m", "tools.bench.gpu", *sys.argv[1:]]
            command += ["--only", ",".join(names), "--output", str(output)]
            subprocess.run(command, check=False)
            if output.is_file():
                for name, rows in json.loads(output.read_text()).items():
                    if isinstance(rows, list):
                        self.results.setdefault(name, []).extend(rows)
        self._save()

    def _save(self) -> None:
        """Write what there is so far."""
        self.results["seconds"] = round(time.monotonic() - self._started, 1)
        write_text(self.options.output, json.dumps(self.results, indent=1) + "\n")

    def _collect(self, name: str, results: Iterator[Result]) -> list[Result]:
        """Return the rows of a part; an error is a row too, so that other parts still run."""
        rows = self.results.setdefault(name, [])
        try:
            for row in results:
                rows.append(row)
                self._save()
        except Exception as error:
            rows.append({"what": name, "error": repr(error)[:300], "ok": False})
            traceback.print_exc()
        self.failed |= not all(row.get("ok", True) for row in rows)
        return rows

    def _checks(self, title: str, results: Iterator[Result]) -> None:
        """Run checks and print how many failed."""
        checks = self._collect(f"{title} checks", results)
        wrong = [check for check in checks if not check["ok"]]
        errors = [check["error"] for check in checks if isinstance(check["error"], float)]
        worst = max(errors, default=0.0)
        print(f"{title}: {len(checks)} checks, {len(wrong)} failed, largest error {worst:.1e}")
        for check in wrong:
            print("  FAILED", check)

    def _steps(self, size: Size) -> None:
        """Time training steps of a size and print a table."""
        steps = self.results.setdefault("steps", [])
        before = len(steps)
        for row in time_steps(self.device, size, self.options):
            steps.append(row)
            self._save()
        self.failed |= any("error" in row for row in steps)
        _print_steps(size, steps[before:])

    def _table(self, name: str, results: Iterator[Result], title: str = "") -> None:
        """Collect the rows of a table; print it, unless it has printed itself."""
        rows = self._collect(name, results)
        if title and rows:
            _print_table(title, rows)


def _print_steps(size: Size, steps: list[Result]) -> None:
    """Print the steps of a size, with their ratios to stock softmax and to ours."""
    title = f"step {size.name}, {size.batch} pairs"
    print(f"\n{title:34} {'ms':>8} {'/ stock':>9} {'/ alpha 1':>9} {'no waits':>9}  support  GB")
    times = {row["contender"]: row["ms"] for row in steps}
    for row in steps:
        ratios = [row["ms"] / times.get(name, math.nan) for name in ("stock softmax", "graph 1")]
        print(
            f"  {row['contender']:32} {row['ms']:8.2f} {ratios[0]:9.3f} {ratios[1]:9.3f}"
            f" {row.get('unwaited_ms', '')!s:>9}  {row.get('support', '')!s:>7}"
            f"  {row.get('gb', '')}"
        )
    for row in steps:
        if "kernels" in row:
            print(
                f"  kernels of a plain step, shape {row['shape']}: {row['kernels']} in "
                f"{row['kernels_ms']} ms"
            )
            for top in row["top"][:3]:  # the file has 30
                print(f"    {top['ms']:8.3f} ms {top['count']:5} {top['kernel'][:90]}")


def _print_table(title: str, rows: list[Result]) -> None:
    """Print rows in columns, and below each the cases that differ."""
    print("\n" + title)
    names = [name for name in rows[0] if name not in ("cases", "ok")]
    widths = [max(len(name), *(len(str(row.get(name, ""))) for row in rows)) for name in names]
    columns = list(zip(names, widths, strict=True))
    print("  " + "  ".join(f"{name:>{width}}" for name, width in columns))
    for row in rows:
        print("  " + "  ".join(f"{row.get(name, '')!s:>{width}}" for name, width in columns))
        for case in row.get("cases", ())[:10]:
            print(f"    {case}")


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--output", type=Path, default=Path("gpu-bench.json"))
    parser.add_argument("--only", help="parts, such as checks,steps-2,losses; default: all")
    parser.add_argument("--contenders", default="stock,packed,plain,graph")
    parser.add_argument("--batches", type=int, help="different batches of each size")
    parser.add_argument("--warm", type=int, help="updates on each batch before it is timed")
    options = parser.parse_args(arguments)
    options.batches = options.batches or (3 if options.device == "cpu" else 16)
    options.warm = options.warm or (3 if options.quick else 6)
    options.contenders = options.contenders.split(",")
    unknown = {*options.contenders} - {"stock", "packed", "plain", "graph"}
    if unknown:
        parser.error(f"--contenders: no such contender: {', '.join(sorted(unknown))}")
    return options


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark; return the exit status, 1 if a check or a table fails."""
    options = parse_arguments(arguments)
    bench = Bench(options)
    wanted = options.only.split(",") if options.only else list(bench.parts)
    names = [name for name in bench.parts if {name, name.split("-")[0]} & set(wanted)]
    if not names:
        sys.exit(f"--only {options.only}: the parts are {', '.join(bench.parts)}")
    bench.run(names)
    print(f"{bench.results['seconds']} s; {options.output}")
    return 1 if bench.failed else 0


if __name__ == "__main__":
    run_script(main)
