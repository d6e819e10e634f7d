"""Check and time training on a GPU, beside stock OpenNMT-py.

    python -m tools.bench.gpu --quick
    python -m tools.bench.gpu --device cpu --quick    # a smoke test with small models

It runs these parts, or those that `--only` names:

checks      compare kernels with float64 on the CPU, and CUDA graphs with plain updates
steps       time training steps on the same batches: `stock` is OpenNMT-py with softmax; `packed`,
            `plain` and `graph` are this project without padding, with padding, and with padding and
            CUDA graphs. A step copies the batch to the GPU, and runs forward and backward pass,
            clipping and fused Adam. The alphas of a Transformer are those of its attention; its
            output is softmax. `/ stock` and `/ alpha 1` are the ratios to stock softmax and to ours
            with CUDA graphs and softmax; `no waits` is the mean time if Python does not wait for
            the GPU between steps.
losses, mappings, attention
            time these beside entmax 1.3 and AdaSplash, if they are installed
encoder     time the LSTM encoder beside cuDNN's
decoding    time a beam of 5, and list all words whose output or certificate differs from the CPU's

Times are medians in milliseconds, with the GPU synchronised around each call. Each contender trains
before it is timed, since the cost of entmax depends on the support. Tables are printed. A JSON file
(`--output`) has everything, with null where nothing was measured. If a part leaves the GPU
unusable, a new process runs the rest.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.errors import UserError
from onmt_entmax.files import json_text, write_text
from onmt_entmax.sparse import backends
from tools.bench.gpu_device import LONGEST_ERROR, Device, Result
from tools.bench.gpu_parts import Part, parts_of


class Bench:
    """Runs parts of the benchmark, and writes their rows to the JSON file after each.

    Args:
        options: options of the command line.
        device: device on which they run.
        parts: the parts by name.

    Attributes:
        rows: results, by `Part.key`.
        failed: whether a check or a table has failed.
    """

    def __init__(self, options: argparse.Namespace, device: Device, parts: dict[str, Part]) -> None:
        self._options = options
        self._device = device
        self._device_name = torch.cuda.get_device_name() if device.is_gpu else "CPU"
        self._parts = parts
        self._started = time.monotonic()
        self.rows: dict[str, list[Result]] = {}
        self.failed = False

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return round(time.monotonic() - self._started, 1)

    def run(self, names: Sequence[str]) -> None:
        """Run parts by name."""
        length = "quick" if self._options.quick else "full"
        print(f"{self._device_name}, torch {torch.__version__}, {length}")
        for number, name in enumerate(names, 1):
            part = self._parts[name]
            part.show(self._collect(name, part))
            self._save()
            print(f"  ({self.seconds:.0f} s)", flush=True)
            if not self._device.works():
                self.failed = True
                self._run_in_new_process(names[number:])
                return
        self._check_kernels()

    def _collect(self, name: str, part: Part) -> list[Result]:
        """Return the rows of a part; an error is a row too, so that other parts still run."""
        rows: list[Result] = []
        recorded = self.rows.setdefault(part.key, [])  # also of other parts
        try:
            for row in part.measure():
                rows.append(row)
                recorded.append(row)
                self._save()  # the GPU may end this process
        except Exception as error:
            row = {"what": name, "error": repr(error)[:LONGEST_ERROR], "ok": False}
            rows.append(row)
            recorded.append(row)
            traceback.print_exc()
        if not all(row.get("ok", True) for row in rows):
            self.failed = True
        return rows

    def _check_kernels(self) -> None:
        """Set `failed` if a kernel has failed: PyTorch then does its work, with a warning."""
        probe = torch.zeros(1, 2, device=self._device.device)
        if self._device.is_gpu and backends.backend_for(probe, 1.5) is backends.reference:
            self.failed = True
            print("FAILED: a kernel; PyTorch did the work of all from then on (see the warning)")

    def _run_in_new_process(self, names: Sequence[str]) -> None:
        """Run parts in a new process: some errors of a GPU last as long as the process."""
        if not names:
            return
        print(f"The GPU fails in this process; a new one runs {', '.join(names)}", flush=True)
        with TemporaryDirectory() as folder:
            output = Path(folder) / "results.json"
            # If an option is given twice, the second value counts.
            command = [sys.executable, "-m", "tools.bench.gpu", *sys.argv[1:]]
            command += ["--only", ",".join(names), "--output", str(output)]
            subprocess.run(command, check=False)
            if output.is_file():
                for name, rows in json.loads(output.read_text(encoding="utf-8")).items():
                    if isinstance(rows, list):  # others say how it was measured
                        self.rows.setdefault(name, []).extend(rows)
        self._save()

    def _save(self) -> None:
        """Write all rows so far, and how they were measured."""
        conditions = {
            "device": self._device_name,
            "torch": torch.__version__,
            "quick": self._options.quick,
            "seconds": self.seconds,
        }
        write_text(self._options.output, json_text(conditions | self.rows))


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    default_device = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", default=default_device, help="default: cuda if there is one")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("gpu-bench.json"),
        help="JSON file for the results (default gpu-bench.json)",
    )
    parser.add_argument("--only", help="parts, such as checks,steps-2,losses; default: all")
    return parser.parse_args(arguments)


def chosen_parts(only: str | None, parts: Sequence[str]) -> list[str]:
    """Return the parts that `--only` names, by themselves or as a group such as `checks`.

    Raises:
        UserError: a name is of no part.
    """
    if only is None:
        return list(parts)
    chosen = only.split(",")
    group_of = {name: name.split("-")[0] for name in parts}
    unknown = [name for name in chosen if name not in {*group_of, *group_of.values()}]
    if unknown:
        raise UserError(f"--only: no such part: {', '.join(unknown)}; there are {', '.join(parts)}")
    return [name for name, group in group_of.items() if name in chosen or group in chosen]


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark; return the exit status, 1 if a check or a table fails."""
    options = parse_arguments(arguments)
    device = Device(options.device)
    parts = parts_of(device, options.quick)
    names = chosen_parts(options.only, list(parts))
    bench = Bench(options, device, parts)
    bench.run(names)
    print(f"{bench.seconds} s; {options.output}")
    return 1 if bench.failed else 0


if __name__ == "__main__":
    run_script(main)
