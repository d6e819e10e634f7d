"""Training steps of this project against stock OpenNMT-py 2.3.0, alternated in one process.

A step is forward, loss, backward, clipping and Adam, on the same batch and from the same first
weights. Stock is OpenNMT-py's own `NMTModel` with softmax and `NMTLossCompute`; ours has entmax in
the attention and at the output. Lengths follow a bell curve (real length mix) and targets can be
learnt from the source, so that supports after `--warmup` steps are those of training.

    OMP_NUM_THREADS=1 taskset -c 1 python -m tools.bench.recurrence --size pilot

Prints one JSON line for each variant, then a table; times are medians in milliseconds, ratios are
medians of per-batch ratios to stock. With one thread the time is the processor's, which other
work on the machine disturbs least; with more it is the wall's. For both sides alike, freed memory
is kept (`mallopt`), so that no step waits for fresh pages.
"""

from __future__ import annotations

import argparse
import copy
import ctypes
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from onmt_entmax.modules.attention import EntmaxGlobalAttention
from onmt_entmax.modules.output import OutputLayer
from onmt_entmax.modules.recurrence import FastInputFeedRNNDecoder
from onmt_entmax.modules.recurrence_encoder import FastRNNEncoder
from onmt_entmax.opennmt import (
    Embeddings,
    InputFeedRNNDecoder,
    NMTLossCompute,
    NMTModel,
    RNNEncoder,
)

PAD = 1
FIRST_WORD = 4  # ids below are padding, unknown, start and end
MAX_GRAD_NORM = 5.0  # OpenNMT-py's default


@dataclass(frozen=True)
class Size:
    """A model and the data it sees; lengths in tokens, without start and end symbol."""

    hidden: int
    source_vocab: int
    target_vocab: int
    source_length: float
    target_length: float
    spread: float


SIZES = {
    "pilot": Size(300, 776, 776, 13.5, 11.8, 3.5),
    "pilot-split": Size(300, 348, 255, 13.5, 11.8, 3.5),
    "words": Size(500, 18_000, 18_000, 11.0, 10.5, 3.5),
}


@dataclass(frozen=True)
class Pair:
    """A padded batch, longest source first; target with start and end symbol."""

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    target_lengths: Tensor


def make_pair(size: Size, batch: int, fill: bool) -> Pair:
    """A random batch: each target token is the image of the source token at its place."""
    shape = (batch,)
    source_lengths = (torch.randn(shape) * size.spread + size.source_length).round().clamp(3, 40)
    source_lengths = source_lengths.long().sort(descending=True).values
    # Targets are about as long as their sources, as in translation.
    ratio = size.target_length / size.source_length
    target_lengths = (source_lengths * ratio + torch.randn(shape)).round().clamp(2, 40).long()
    if fill:
        source_lengths = torch.full(shape, round(size.source_length))
        target_lengths = torch.full(shape, round(size.target_length))
    # Zipf's law: the log of a rank is uniform.
    words = min(size.source_vocab, size.target_vocab) - FIRST_WORD
    longest = int(max(source_lengths.max(), target_lengths.max()))
    ranks = torch.rand(longest, batch).mul(torch.tensor(float(words)).log()).exp().long() - 1
    words_in = ranks.clamp(0, words - 1) + FIRST_WORD
    words_out = (words_in - FIRST_WORD + words // 2) % words + FIRST_WORD
    place = torch.arange(longest).unsqueeze(1)
    source = words_in.masked_fill(place >= source_lengths, PAD)[: int(source_lengths.max())]
    body = words_out.masked_fill(place > target_lengths, PAD)
    body = body.masked_fill(place == target_lengths, 3)
    if longest == int(target_lengths.max()):
        ends = torch.where(target_lengths == longest, 3, PAD).unsqueeze(0)
        body = torch.cat([body, ends])
    body = body[: int(target_lengths.max()) + 1]
    target = torch.cat([torch.full((1, batch), 2), body])
    return Pair(source.unsqueeze(-1), source_lengths, target.unsqueeze(-1), target_lengths + 2)


def embeddings(size: Size, vocab: int) -> Embeddings:
    return Embeddings(size.hidden, vocab, PAD)


def stock_model(size: Size, dropout: float) -> NMTModel:
    """OpenNMT-py's two-layer bidirectional encoder and input-feeding decoder, with softmax."""
    source = embeddings(size, size.source_vocab)
    target = embeddings(size, size.target_vocab)
    encoder = RNNEncoder("LSTM", True, 2, size.hidden, dropout, source)
    decoder = InputFeedRNNDecoder(
        "LSTM", True, 2, size.hidden, "general", dropout=dropout, embeddings=target
    )
    model = NMTModel(encoder, decoder)
    model.generator = nn.Sequential(
        nn.Linear(size.hidden, size.target_vocab), nn.LogSoftmax(dim=-1)
    )
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -0.1, 0.1)
    return model


def our_model(stock: NMTModel, size: Size, alpha: float, dtype: torch.dtype | None) -> NMTModel:
    """Our model with the weights of `stock`."""
    model = copy.deepcopy(stock)
    model.encoder.__class__ = FastRNNEncoder
    model.decoder.__class__ = FastInputFeedRNNDecoder
    attention = EntmaxGlobalAttention(size.hidden, "general", alpha)
    attention.load_state_dict(model.decoder.attn.state_dict())
    model.decoder.attn = attention
    model.encoder.matmul_dtype = model.decoder.matmul_dtype = dtype
    model.generator = OutputLayer(size.hidden, size.target_vocab, alpha)
    with torch.no_grad():
        model.generator.weight.copy_(stock.generator[0].weight)
        model.generator.bias.copy_(stock.generator[0].bias)
    return model


Step = Callable[[Pair], float]


def stock_step(model: NMTModel) -> Step:
    """A training step as OpenNMT-py's trainer does it; returns the mean loss."""
    criterion = nn.NLLLoss(ignore_index=PAD, reduction="sum")
    loss_compute = NMTLossCompute(criterion, model.generator)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def step(pair: Pair) -> float:
        optimizer.zero_grad()
        outputs, attentions = model(pair.source, pair.target, pair.source_lengths)
        tokens = int((pair.target_lengths - 1).sum())
        batch = SimpleNamespace(tgt=pair.target)
        loss, _ = loss_compute(batch, outputs, attentions, normalization=tokens)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
        optimizer.step()
        return loss.item()

    return step


def our_step(model: NMTModel, supports: list[float], fused: bool) -> Step:
    """A training step on real positions only; returns the mean loss."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=fused)

    def step(pair: Pair) -> float:
        optimizer.zero_grad()
        state, bank, lengths = model.encoder(pair.source, pair.source_lengths)
        model.decoder.init_state(pair.source, bank, state)
        hidden, index = model.decoder.packed_forward(
            pair.target[:-1], pair.target_lengths - 1, bank, lengths
        )
        result = model.generator.loss(hidden, pair.target[1:].flatten()[index], PAD)
        tokens = hidden.size(0)
        loss = result.loss / tokens
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
        optimizer.step()
        supports.append(float(result.support) / tokens)
        return loss.item()

    return step


def measure(options: argparse.Namespace) -> list[dict[str, object]]:
    """Alternate stock and our variants; a result for each."""
    torch.manual_seed(1)
    size = SIZES[options.size]
    stock = stock_model(size, options.dropout)
    steps: dict[str, Step] = {"stock softmax": stock_step(stock)}
    supports: dict[str, list[float]] = {}
    for variant in options.variants.split(","):
        alpha, _, kind = variant.partition(":")
        dtype = torch.bfloat16 if kind == "bf16" else None
        name = f"ours alpha={alpha}" + (" bf16" if dtype else "")
        supports[name] = []
        steps[name] = our_step(
            our_model(stock, size, float(alpha), dtype), supports[name], options.fused_adam
        )
    times: dict[str, list[float]] = {name: [] for name in steps}
    clock = time.process_time if options.threads == 1 else time.perf_counter
    losses = dict.fromkeys(steps, 0.0)
    for number in range(options.warmup + options.steps):
        pair = make_pair(size, options.batch, options.no_padding)
        for name, step in steps.items():
            # Stock's speed does not depend on what it has learnt.
            if number < options.warmup - 3 and name == "stock softmax":
                continue
            start = clock()
            losses[name] = step(pair)
            if number >= options.warmup:
                times[name].append(clock() - start)
    base = times["stock softmax"]
    return [
        {
            "variant": name,
            "size": options.size,
            "threads": torch.get_num_threads(),
            "median_ms": round(1000 * statistics.median(values), 1),
            "ratio": round(statistics.median(a / b for a, b in zip(values, base, strict=True)), 3),
            "loss": round(losses[name], 3),
            "support": round(supports[name][-1], 1) if name in supports else size.target_vocab,
        }
        for name, values in times.items()
    ]


def keep_freed_memory() -> None:
    """Tell glibc, where there is one, to neither map large blocks apart nor return memory."""
    trim_threshold, mmap_max = -1, -4
    try:
        library = ctypes.CDLL("libc.so.6")
    except OSError:
        return
    library.mallopt(mmap_max, 0)
    library.mallopt(trim_threshold, 2**31 - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--size", choices=SIZES, default="pilot")
    parser.add_argument("--variants", default="1.5,1", help="alphas, each with :bf16 if wished")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=30, help="timed steps of each variant")
    parser.add_argument("--warmup", type=int, default=100, help="untimed steps before")
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--fused-adam", action="store_true", help="ours with torch's fused Adam")
    parser.add_argument("--no-padding", action="store_true", help="all lengths equal")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    results = measure(options)
    for result in results:
        print(json.dumps(result))
    print(f"{'variant':24} {'ms':>8} {'ratio':>6} {'support':>8}")
    for r in results:
        print(f"{r['variant']:24} {r['median_ms']:8} {r['ratio']:6} {r['support']:8}")


if __name__ == "__main__":
    main()
