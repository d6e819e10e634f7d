"""CUDA graphs of the two functions of an update.

A graph starts all kernels of a function at once, on the memory of its capture: what the function
reads must be at the same addresses at every call, or stale data is used silently. In the mode
"check", the first replay of each graph is compared with a plain call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.nn.lstm import FastInputFeedRNNDecoder, FastRNNEncoder
from onmt_entmax.nn.transformer import PaddedTransformerEncoder
from onmt_entmax.sparse.backends import kernels_start
from onmt_entmax.train.config import TrainingError

MOST_GRAPHS = 128
# Relative. A graph replays the kernels of a plain update, but products may add in another order.
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}
_TF32_TOLERANCE = 1e-2


def reason_against(model: SparseNMTModel) -> str | None:
    """Return why a model cannot be trained on padded batches, or None if it can."""
    device = device_of(model)
    if device.type == "cuda" and not kernels_start(device):
        return "Triton starts no kernels here"
    if not isinstance(model.encoder, PaddedTransformerEncoder):
        if not isinstance(model.encoder, FastRNNEncoder) or not model.encoder.is_covered():
            return "the encoder is not an LSTM of type rnn or brnn without positions"
        decoder = model.decoder
        if not isinstance(decoder, FastInputFeedRNNDecoder) or not decoder.is_covered():
            return "the decoder is not an input-feeding LSTM with global attention"
        if model.encoder.matmul_dtype is not None:
            return "`matmul_dtype: bfloat16` is for CPUs; on a GPU, `tf32` is faster"
    return None


def padded_outputs(
    model: SparseNMTModel, source: Tensor, target: Tensor, lengths: Tensor
) -> Tensor:
    """Return a model's decoder outputs for padded sentences, by teacher forcing.

    Args:
        model: one that `reason_against` accepts.
        source: ids ``(source, rows)``.
        target: ids ``(target + 1, rows)`` with start and end symbols.
        lengths: source lengths ``(rows,)``, at least 1.

    Returns:
        ``(target, rows, hidden)``, also for padding.
    """
    if isinstance(model.encoder, PaddedTransformerEncoder):
        outputs: Tensor = model(source.unsqueeze(2), target.unsqueeze(2), lengths)[0]
        return outputs
    states, bank, lengths = model.encoder(source.unsqueeze(2), lengths)
    model.decoder.init_state(source, bank, states)
    outputs, _ = model.decoder.teacher_forced(target[:-1].unsqueeze(2), None, bank, lengths)
    return outputs.view(len(target) - 1, source.size(1), -1)


class Recorder:
    """Calls functions, and from the second call on replays a graph of each.

    On a CPU a function is its own graph, so that tests run everything but the capture.

    Args:
        device: of the model.
        mode: "on", "off" (plain calls), or "check".
    """

    def __init__(self, device: torch.device, mode: str) -> None:
        self._device, self._mode = device, mode
        self._on_gpu = device.type == "cuda" and mode != "off"
        self._pool = torch.cuda.graph_pool_handle() if self._on_gpu else None
        self._beside = torch.cuda.Stream(device) if self._on_gpu else None
        self._graphs: dict[Hashable, Callable[[], object]] = {}
        self._calls: Counter[Hashable] = Counter()

    @property
    def captured(self) -> int:
        """Return the number of graphs."""
        return len(self._graphs)

    def call(
        self, key: Hashable, function: Callable[[], object], changed: Callable[[], list[Tensor]]
    ) -> None:
        """Call a function that reads and writes the same memory at every call.

        Args:
            key: all that the function depends on besides the content of its memory.
            function: must not read values back.
            changed: returns the tensors that it changes.

        Raises:
            TrainingError: in the mode "check", a graph's results differ from those of the function.
        """
        if key in self._graphs:
            self._graphs[key]()
            return
        self._calls[key] += 1
        if self._mode == "off":
            function()
        elif self._calls[key] == 1 or self.captured >= MOST_GRAPHS:
            with self._on_side_stream():
                function()
        else:
            replay = self._capture(function)
            if self._mode == "check":
                self._compare(key, replay, function, changed())
            else:
                replay()
            self._graphs[key] = replay

    def _capture(self, function: Callable[[], object]) -> Callable[[], object]:
        if not self._on_gpu:
            return function
        graph = torch.cuda.CUDAGraph()
        # Let other threads use the GPU meanwhile.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            function()
        return graph.replay

    @contextmanager
    def _on_side_stream(self) -> Iterator[None]:
        """Run a function on a side stream, as CUDA requires before its capture."""
        if self._beside is None:
            yield
            return
        here = torch.cuda.current_stream(self._device)
        self._beside.wait_stream(here)
        with torch.cuda.stream(self._beside):
            yield
        here.wait_stream(self._beside)

    def _compare(
        self,
        key: Hashable,
        replay: Callable[[], object],
        function: Callable[[], object],
        changed: list[Tensor],
    ) -> None:
        """Compare a graph's first replay with a plain call, and keep the latter's result."""
        before = [tensor.detach().clone() for tensor in changed]
        with torch.random.fork_rng([self._device] if self._on_gpu else []):
            replay()
        replayed = [tensor.detach().clone() for tensor in changed]
        with torch.no_grad():
            torch._foreach_copy_(changed, before)
        function()
        rounded = torch.get_float32_matmul_precision() != "highest"
        for actual, tensor in zip(replayed, changed, strict=True):
            expected = tensor.detach()
            tolerance = _TF32_TOLERANCE if rounded else _TOLERANCE.get(expected.dtype, 0.0)
            scale = float(expected.abs().max())
            difference = float((actual - expected).abs().max())
            if not difference <= tolerance * max(scale, 1e-30):
                raise TrainingError(
                    f"the CUDA graph of {key} differs from a plain update by {difference:.2g} "
                    f"where the largest value is {scale:.2g}; train with `cuda_graphs: off` and "
                    "report it"
                )
