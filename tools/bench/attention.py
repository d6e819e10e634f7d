"""Time attention with entmax, forward and backward, against softmax attention of PyTorch.

    python -m tools.bench.attention --quick
    python -m tools.bench.attention --device cuda

The contenders run one after the other in each round; a cell is the median of milliseconds, and its
ratio to PyTorch's `scaled_dot_product_attention`. "learned" has one alpha a head, from 1.1 to 1.9,
with its gradient. entmax 1.3 and, on a GPU, AdaSplash take part where they are installed: entmax on
scores that PyTorch multiplies, AdaSplash causal or with lengths, in bfloat16. On a CPU processor
time is measured (`--clock wall` for the other), on a GPU the time until it has finished.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.files import write_text
from onmt_entmax.sparse.attention import entmax_attention
from tools.bench.runner import COUNT, POSITIVE

SIZE = 64
Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Shape:
    """Sentences, heads and positions, and what masks these."""

    sentences: int
    heads: int
    length: int
    is_causal: bool = False

    def __str__(self) -> str:
        causal = " causal" if self.is_causal else ""
        return f"({self.sentences}, {self.heads}, {self.length}, {self.length}){causal}"


ON_CPU = (Shape(64, 8, 32), Shape(16, 8, 128), Shape(16, 8, 128, True))
ON_GPU = (*ON_CPU, Shape(8, 8, 1024), Shape(8, 8, 1024, True), Shape(2, 8, 4096, True))
SMALL = (Shape(2, 2, 16), Shape(2, 2, 16, True))
OURS = ("softmax", "1.5", "learned", "1.33", "2")  # no peers, whose kernels may not compile here


def installed(name: str) -> Any:
    """Return a module, or None if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


def with_mapping(
    mapping: Callable[[Tensor], Tensor], is_causal: bool, query: Tensor, key: Tensor, value: Tensor
) -> Tensor:
    """Return attention with a mapping of whole scores."""
    scores = query @ key.mT * query.shape[-1] ** -0.5
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~mask, -torch.inf)
    return mapping(scores) @ value


def contenders(shape: Shape, device: torch.device, dtype: torch.dtype) -> dict[str, Attention]:
    """Return attentions by name, the reference first."""
    causal = shape.is_causal
    alphas = torch.linspace(1.1, 1.9, shape.heads, device=device).requires_grad_()
    found: dict[str, Attention] = {
        "softmax": partial(scaled_dot_product_attention, is_causal=causal),
        "1.5": partial(entmax_attention, alpha=1.5, is_causal=causal),
        "learned": partial(entmax_attention, alpha=alphas, is_causal=causal),
    }
    if device.type == "cpu":  # on a GPU, the kernels of each alpha take seconds to compile
        for alpha in (1.33, 2.0):
            found[f"{alpha:g}"] = partial(entmax_attention, alpha=alpha, is_causal=causal)
    peer = installed("entmax")
    if peer is not None:
        found["entmax15"] = partial(with_mapping, partial(peer.entmax15, dim=-1), causal)
        bisect = partial(peer.entmax_bisect, alpha=1.5, dim=-1)
        found["bisect"] = partial(with_mapping, bisect, causal)
    splash = installed("adasplash") if device.type == "cuda" else None
    if splash is not None and causal and dtype != torch.float32:
        found["adasplash"] = partial(splash.adasplash, alpha=1.5, is_causal=True)
    return found


def run_once(attention: Attention, tensors: list[Tensor], gradient: Tensor) -> None:
    """Run forward and backward, with the gradient in alpha if it has one."""
    alpha = getattr(attention, "keywords", {}).get("alpha")
    wanted = [*tensors, *([alpha] if isinstance(alpha, Tensor) else [])]
    torch.autograd.grad(attention(*tensors), wanted, gradient)


def measure(
    shape: Shape, device: torch.device, dtype: torch.dtype, seconds: float, clock: str
) -> dict[str, float | str]:
    """Return median milliseconds by contender, or why it failed."""
    torch.manual_seed(0)
    size = (shape.sentences, shape.heads, shape.length, SIZE)
    query, key, value, gradient = (torch.randn(size, device=device, dtype=dtype) for _ in range(4))
    tensors = [tensor.requires_grad_() for tensor in (query, key, value)]
    found = contenders(shape, device, dtype)
    results: dict[str, float | str] = {}
    for name, attention in list(found.items()):
        try:
            for _ in range(3):
                run_once(attention, tensors, gradient)
        except Exception as error:
            if name in OURS:
                raise
            results[name] = (str(error) or repr(error)).splitlines()[0][:80]
            del found[name]
    now = time.process_time if clock == "cpu" else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in found}
    end = time.perf_counter() + seconds
    while len(times["softmax"]) < 5 or time.perf_counter() < end:
        for name, attention in found.items():
            begin = now()
            run_once(attention, tensors, gradient)
            if device.type == "cuda":
                torch.cuda.synchronize()
            times[name].append(now() - begin)
    return results | {name: 1e3 * statistics.median(taken) for name, taken in times.items()}


def table(
    device: torch.device, quick: bool, seconds: float, clock: str
) -> Iterator[dict[str, Any]]:
    """Measure and print all shapes; yield a record of each."""
    shapes: dict[torch.dtype, tuple[Shape, ...]]
    if device.type == "cpu":
        shapes = {torch.float32: SMALL if quick else ON_CPU}
    else:  # fewer in float32, whose kernels take the longest to compile
        shapes = {torch.float32: ON_CPU[:2], torch.bfloat16: ON_CPU if quick else ON_GPU}
    for dtype, chosen in shapes.items():
        print(f"attention, {str(dtype)[6:]}, head size {SIZE}: milliseconds (ratio to softmax)")
        for shape in chosen:
            times = measure(shape, device, dtype, seconds, clock)
            base = float(times["softmax"])
            cells = [
                f"{name} {time_:.3g} ({time_ / base:.2f})" if isinstance(time_, float)
                else f"{name} failed"
                for name, time_ in times.items()
            ]  # fmt: skip
            print(f"{shape!s:<26}| " + " | ".join(cells), flush=True)
            yield {"shape": str(shape), "dtype": str(dtype), "milliseconds": times}


def main(given: Sequence[str]) -> int:
    """Run the benchmark; return the exit status."""
    parser = argument_parser(__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=COUNT, default=1)
    parser.add_argument(
        "--quick", action="store_true", help="fewer or smaller shapes, in less time"
    )
    parser.add_argument("--seconds", type=POSITIVE, default=5.0, help="seconds for each shape")
    parser.add_argument("--clock", choices=("cpu", "wall"), help="cpu: processor time")
    parser.add_argument("--output", type=Path, help="JSON file for the results")
    arguments = parser.parse_args(given)
    device = torch.device(arguments.device)
    torch.set_num_threads(arguments.threads)
    seconds = min(arguments.seconds, 0.5) if arguments.quick else arguments.seconds
    alone = device.type == "cpu" and arguments.threads == 1  # processor time adds up threads
    clock = arguments.clock or ("cpu" if alone else "wall")
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    load = os.getloadavg()[0]
    print(f"torch {torch.__version__}, {name}, {arguments.threads} thread(s), load {load:.1f}")
    records = list(table(device, arguments.quick, seconds, clock))
    conditions = {"torch": torch.__version__, "device": name, "clock": clock, "load": load}
    whole = {**conditions, "threads": arguments.threads, "attention": records}
    if arguments.output is not None:
        write_text(arguments.output, json.dumps(whole, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    run_script(main)
