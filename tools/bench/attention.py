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

SIZE = 64  # of a head
WARM_UP = 3  # passes before the timing; the first ones compile kernels
LEAST_ROUNDS = 5
Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Shape:
    """The shape of attention.

    Attributes:
        sentences: of a batch.
        heads: of each sentence.
        length: queries, and keys.
        is_causal: whether keys behind a query are masked.
    """

    sentences: int
    heads: int
    length: int
    is_causal: bool = False

    def __str__(self) -> str:
        causal = " causal" if self.is_causal else ""
        return f"({self.sentences}, {self.heads}, {self.length}, {self.length}){causal}"


ON_CPU = (Shape(64, 8, 32), Shape(16, 8, 128), Shape(16, 8, 128, is_causal=True))
ON_GPU = (
    *ON_CPU,
    Shape(8, 8, 1024),
    Shape(8, 8, 1024, is_causal=True),
    Shape(2, 8, 4096, is_causal=True),
)
SMALL = (Shape(2, 2, 16), Shape(2, 2, 16, is_causal=True))  # for smoke tests
OURS = ("softmax", "1.5", "learned", "1.33", "2")  # the others' kernels may not compile here


def installed(name: str) -> Any:
    """Return a module, or None if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


def with_mapping(
    mapping: Callable[[Tensor], Tensor], is_causal: bool, query: Tensor, key: Tensor, value: Tensor
) -> Tensor:
    """Return attention with a mapping of whole scores.

    Args:
        mapping: of the last dimension.
        is_causal: whether keys behind a query are masked.
        query: `(sentences, heads, length, size)`.
        key: likewise.
        value: likewise.
    """
    scores = query @ key.mT * query.shape[-1] ** -0.5
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~mask, -torch.inf)
    return mapping(scores) @ value


def contenders(shape: Shape, device: torch.device, dtype: torch.dtype) -> dict[str, Attention]:
    """Return attentions by name, the reference first."""
    causal = shape.is_causal
    alphas = torch.linspace(1.1, 1.9, shape.heads, device=device).requires_grad_()
    attentions: dict[str, Attention] = {
        "softmax": partial(scaled_dot_product_attention, is_causal=causal),
        "1.5": partial(entmax_attention, alpha=1.5, is_causal=causal),
        "learned": partial(entmax_attention, alpha=alphas, is_causal=causal),
    }
    if device.type == "cpu":  # on a GPU, the kernels of each alpha take seconds to compile
        for alpha in (1.33, 2.0):
            attentions[f"{alpha:g}"] = partial(entmax_attention, alpha=alpha, is_causal=causal)
    peer = installed("entmax")
    if peer is not None:
        attentions["entmax15"] = partial(with_mapping, partial(peer.entmax15, dim=-1), causal)
        bisect = partial(peer.entmax_bisect, alpha=1.5, dim=-1)
        attentions["bisect"] = partial(with_mapping, bisect, causal)
    splash = installed("adasplash") if device.type == "cuda" else None
    if splash is not None and causal and dtype != torch.float32:
        attentions["adasplash"] = partial(splash.adasplash, alpha=1.5, is_causal=True)
    return attentions


def run_once(attention: Attention, tensors: list[Tensor], gradient: Tensor) -> None:
    """Run forward and backward, with the gradient in alpha if it has one."""
    alpha = getattr(attention, "keywords", {}).get("alpha")
    inputs = [*tensors, alpha] if isinstance(alpha, Tensor) else tensors
    torch.autograd.grad(attention(*tensors), inputs, gradient)


def measure(
    shape: Shape, device: torch.device, dtype: torch.dtype, seconds: float, clock: str
) -> dict[str, float | str]:
    """Return median milliseconds by contender, or why it failed.

    Args:
        shape: of attention.
        device: where it runs.
        dtype: of all tensors.
        seconds: how long to measure, at least.
        clock: "cpu" for processor time, else "wall".
    """
    torch.manual_seed(0)
    size = (shape.sentences, shape.heads, shape.length, SIZE)
    query, key, value, gradient = (torch.randn(size, device=device, dtype=dtype) for _ in range(4))
    tensors = [tensor.requires_grad_() for tensor in (query, key, value)]
    runs: dict[str, Callable[[], None]] = {}
    failures: dict[str, str] = {}
    for name, attention in contenders(shape, device, dtype).items():
        run: Callable[[], None] = partial(run_once, attention, tensors, gradient)
        try:
            for _ in range(WARM_UP):
                run()
            runs[name] = run
        except Exception as error:
            if name in OURS:
                raise
            failures[name] = (str(error) or repr(error)).splitlines()[0][:80]
    now = time.process_time if clock == "cpu" else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in runs}
    end = time.perf_counter() + seconds
    while len(times["softmax"]) < LEAST_ROUNDS or time.perf_counter() < end:
        for name, run in runs.items():
            begin = now()
            run()
            if device.type == "cuda":
                torch.cuda.synchronize()
            times[name].append(now() - begin)
    medians = {name: 1e3 * statistics.median(taken) for name, taken in times.items()}
    return {**failures, **medians}


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
        name_of_type = str(dtype).removeprefix("torch.")
        print(f"attention, {name_of_type}, head size {SIZE}: milliseconds (ratio to softmax)")
        for shape in chosen:
            times = measure(shape, device, dtype, seconds, clock)
            reference = float(times["softmax"])
            cells = [_cell(name, result, reference) for name, result in times.items()]
            print(f"{shape!s:<26}| " + " | ".join(cells), flush=True)
            yield {"shape": str(shape), "dtype": str(dtype), "milliseconds": times}


def _cell(name: str, result: float | str, reference: float) -> str:
    """Return the cell of a contender: milliseconds and ratio, or that it failed."""
    if isinstance(result, str):
        return f"{name} failed"
    return f"{name} {result:.3g} ({result / reference:.2f})"


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
