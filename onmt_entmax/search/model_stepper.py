"""The stepper of a model: an encoder, one of two ways to run a decoder, and the output layer.

`OpenNMTDecoding` runs any of OpenNMT-py's decoders, `RecurrentDecoding` an input-feeding LSTM with
prepared weights: the same numbers, faster. Another decoder is another class with their methods,
which are those of `Stepper` once the source is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from onmt_entmax.nn.output import OutputLayer, PreparedOutput
from onmt_entmax.nn.support import Distribution
from onmt_entmax.recurrence.decoder_step import DecoderStep
from onmt_entmax.recurrence.source_memory import SourceMemory
from onmt_entmax.search.expansion import Ints
from onmt_entmax.search.stepper import SearchError, Step

if TYPE_CHECKING:
    from onmt_entmax.data.batch import Batch
    from onmt_entmax.data.vocabulary import Vocabulary
    from onmt_entmax.model import SparseNMTModel

OutputFunction = Callable[[Tensor], Distribution]
"""Maps hidden states `(rows, hidden)` to log-probabilities."""


class ModelStepper:
    """Runs a model, recurrent or Transformer; see `Stepper`.

    Weights are those of the moment when the stepper was made. Several threads may search with it.

    Args:
        model: in evaluation mode.
        vocabulary: of the target.
        attention: whether `step` returns attention.
        temperature: scores are divided by it before they become probabilities.
        dtype: of the factors of products in LSTMs, `torch.bfloat16` or None for the weights' own.

    Raises:
        SearchError: with a dtype, if the model is not LSTMs that have such products.
        ValueError: if the model is in training mode, or its output layer has another size than the
            vocabulary.
    """

    def __init__(
        self,
        model: SparseNMTModel,
        vocabulary: Vocabulary,
        attention: bool = False,
        temperature: float = 1.0,
        dtype: torch.dtype | None = None,
    ) -> None:
        if model.training:
            raise ValueError(
                "search needs the model in evaluation mode (call model.eval()): dropout is random"
            )
        size = model.generator.weight.shape[0]
        if size != len(vocabulary):
            raise ValueError(
                f"the model's output has size {size}, the target vocabulary {len(vocabulary)}"
            )
        self.model = model
        self.attention = attention
        self.temperature = temperature
        self.bos, self.eos = vocabulary.bos, vocabulary.eos
        self.excluded: tuple[int, ...] = (vocabulary.pad, vocabulary.bos)
        self.vocabulary_size = size
        self.dense = model.generator.alpha == 1
        self.can_join = model.decoder.can_join
        generator = _at_temperature(model.generator, temperature)
        output = PreparedOutput(generator.weight, generator.bias, generator.alpha)
        self._output: OutputFunction = output
        self._decoding: OpenNMTDecoding | RecurrentDecoding
        step = model.decoder.search_step(size, dtype)
        if step is not None:
            self._decoding = RecurrentDecoding(step, output, attention)
        elif dtype is not None:
            raise SearchError("matmul_dtype: bfloat16 is of input-feeding LSTM decoders; omit it")
        else:
            self._decoding = OpenNMTDecoding(model.decoder, output, attention)
        self._encoder = model.encoder if dtype is None else model.encoder.with_matmul_dtype(dtype)

    def double(self) -> ModelStepper:
        """Return a stepper of a copy of the model in float64, run by OpenNMT-py's own modules.

        Raises:
            SearchError: if the encoder is OpenNMT-py's `mean`, which computes in float32 only.
        """
        if self.model.encoder.is_float32_only:
            raise SearchError("OpenNMT-py's mean encoder cannot be computed in float64 (verify)")
        other = copy(self)
        self.model.decoder.state = {}  # of the last batch, with its graph if that was training
        other.model = deepcopy(self.model).double()
        other._encoder = other.model.encoder
        other._output = _at_temperature(other.model.generator, self.temperature).log_probs
        other._decoding = OpenNMTDecoding(other.model.decoder, other._output, self.attention)
        return other

    def start(self, batch: Batch) -> Any:
        """Encode the batch; return a state with one row for each sentence, in its order."""
        batch = batch.to(next(self.model.parameters()).device)
        encoder_state, memory_bank, lengths = self._encoder(batch.source, batch.source_lengths)
        decoder = _with_empty_state(self.model.decoder)
        decoder.init_state(batch.source, memory_bank, encoder_state)
        return self._decoding.start(decoder.state, memory_bank, lengths)

    def source_lengths(self, batch: Batch) -> list[int]:
        """Return the source tokens of each sentence, unknown ones too."""
        lengths: list[int] = batch.source_lengths.tolist()
        return lengths

    def step(self, state: Any, tokens: Tensor) -> Step:
        """Append `tokens` `(rows,)` int64 to the rows."""
        return self._decoding.step(state, tokens)

    def select(self, state: Any, rows: Tensor) -> Any:
        """Return the state of `rows` `(new rows,)` int64."""
        return self._decoding.select(state, rows)

    def join(self, states: Sequence[Any]) -> Any:
        """Return one state of all rows of recurrent states."""
        return self._decoding.join(states)


def _at_temperature(layer: OutputLayer, temperature: float) -> OutputLayer:
    """Return an output layer whose scores are divided by a temperature."""
    if temperature == 1:
        return layer
    layer = deepcopy(layer)
    with torch.no_grad():
        layer.weight.div_(temperature)
        layer.bias.div_(temperature)
    return layer


@dataclass(frozen=True)
class RecurrentState:
    """The rows of a search with an input-feeding LSTM."""

    vectors: Tensor
    """`(rows, size)`, see `DecoderStep`"""
    memory: SourceMemory
    owner: Ints
    """`(rows,)` position in `memory` of each row's sentence"""


def _without_unused(
    memory: SourceMemory, owner: Ints, share: float = 1.0
) -> tuple[SourceMemory, Ints]:
    """Remove the sources of sentences that no row belongs to, and number the others anew.

    Copying these costs time: it is done only if at most this share of the sentences have rows.
    """
    used = np.flatnonzero(np.bincount(owner, minlength=len(memory)))
    if len(used) == len(memory) or len(used) > share * len(memory):
        return memory, owner
    return memory.select(torch.from_numpy(used)), np.searchsorted(used, owner)


class RecurrentDecoding:
    """Runs an input-feeding LSTM decoder with prepared weights; its steps may return attention."""

    def __init__(self, step: DecoderStep, output: OutputFunction, attention: bool) -> None:
        self._step, self._output, self._attention = step, output, attention

    def start(self, state: dict[str, Any], bank: Tensor, lengths: Tensor) -> RecurrentState:
        """See `OpenNMTDecoding`."""
        hidden, cell = state["hidden"]
        vectors = self._step.first(hidden, cell, state["input_feed"][0])
        memory = self._step.memory(bank, lengths)
        return RecurrentState(vectors, memory, np.arange(len(lengths)))

    def step(self, state: RecurrentState, tokens: Tensor) -> Step:
        """See `OpenNMTDecoding`."""
        tokens = tokens.to(state.vectors.device)
        owners = torch.from_numpy(state.owner).to(state.vectors.device)
        hidden, weights, vectors = self._step(state.vectors, tokens, state.memory, owners)
        lengths = None
        if self._attention:
            lengths = state.memory.lengths[owners].cpu()
        return Step(
            distribution=self._output(hidden),
            attention=weights.cpu() if self._attention else None,
            state=replace(state, vectors=vectors),
            source_lengths=lengths,
        )

    def select(self, state: RecurrentState, rows: Tensor) -> RecurrentState:
        """See `OpenNMTDecoding`."""
        vectors = state.vectors.index_select(0, rows.to(state.vectors.device))
        owner = state.owner[rows.numpy()]
        if np.array_equal(owner, state.owner):
            return replace(state, vectors=vectors)
        return RecurrentState(vectors, *_without_unused(state.memory, owner, 0.5))

    def join(self, states: Sequence[RecurrentState]) -> RecurrentState:
        """See `OpenNMTDecoding`."""
        memories, owners = zip(
            *(_without_unused(state.memory, state.owner) for state in states), strict=True
        )
        starts = np.cumsum([0, *map(len, memories)])[:-1]
        return RecurrentState(
            torch.cat([state.vectors for state in states]),
            SourceMemory.join(memories),
            np.concatenate([owner + n for owner, n in zip(owners, starts, strict=True)]),
        )


@dataclass(frozen=True)
class DecoderSource:
    """What a decoder reads of the source, once for each sentence and not for each row."""

    memory_bank: Tensor
    """`(source length, sentences, hidden)`"""
    lengths: Tensor
    """`(sentences,)`"""
    src: Tensor | None = None
    """`(source length, sentences, 1)` ids, for a Transformer"""
    cache: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    """Keys and values of a Transformer's layers, `(sentences, heads, source length, size)`"""

    def __len__(self) -> int:
        return len(self.lengths)

    def rows(self, owner: Tensor) -> DecoderSource:
        """Return the source of each row, or of chosen sentences.

        Args:
            owner: `(rows,)` sentence of each row, on the CPU.
        """
        if torch.equal(owner, torch.arange(len(self))):
            return self
        index = owner.to(self.lengths.device)

        def pick(tensor: Tensor, dim: int) -> Tensor:
            if len(self) > 1:
                return tensor.index_select(dim, index)
            return tensor.expand([len(owner) if d == dim else -1 for d in range(tensor.dim())])

        return DecoderSource(
            pick(self.memory_bank, 1),
            pick(self.lengths, 0),
            None if self.src is None else pick(self.src, 1),
            {
                layer: {name: pick(tensor, 0) for name, tensor in tensors.items()}
                for layer, tensors in self.cache.items()
            },
        )


@dataclass(frozen=True)
class DecoderState:
    """The state of an OpenNMT-py decoder, taken out of the module that normally keeps it."""

    inside: dict[str, Any]
    """The decoder's own `state`, without what is in `source`."""
    source: DecoderSource
    owner: Tensor
    """`(rows,)` position in `source` of each row's sentence, on the CPU"""
    length: int = 0
    """Tokens taken so far, `bos` included."""
    spread: list[DecoderSource] = field(default_factory=list, repr=False)
    """A cache, empty or of one element; shared by the states with the same `owner`."""

    def source_rows(self) -> DecoderSource:
        """Return the source of each row."""
        if not self.spread:
            self.spread.append(self.source.rows(self.owner))
        return self.spread[0]

    def compact(self) -> DecoderState:
        """Return the state without the sources of sentences that no row belongs to."""
        used, owner = torch.unique(self.owner, return_inverse=True)
        if len(used) == len(self.source):
            return self
        return replace(self, source=self.source.rows(used), owner=owner, spread=[])


class OpenNMTDecoding:
    """Runs a decoder of OpenNMT-py, which keeps its state inside the module.

    Each call works with a copy of the module that shares its weights, so that several threads may
    use one model.
    """

    def __init__(self, decoder: Any, output: OutputFunction, attention: bool) -> None:
        self._decoder, self._output, self._attention = decoder, output, attention

    def start(self, state: dict[str, Any], bank: Tensor, lengths: Tensor) -> DecoderState:
        """Return a state with one row for each sentence.

        Args:
            state: of OpenNMT-py's decoder after `init_state`.
            bank: `(source length, sentences, hidden)`.
            lengths: `(sentences,)` of the sources.
        """
        inside = _copy_dicts(state)
        source = DecoderSource(bank, lengths, inside.pop("src", None))
        return DecoderState(inside, source, torch.arange(len(lengths)))

    def step(self, state: DecoderState, tokens: Tensor) -> Step:
        """Append `tokens` `(rows,)` int64 to the rows."""
        decoder, source = _with_empty_state(self._decoder), state.source_rows()
        decoder.state = _copy_dicts(state.inside)
        if source.src is not None:
            decoder.state["src"] = source.src
        for layer, tensors in source.cache.items():
            decoder.state["cache"][layer].update(tensors)
        hidden, attentions = decoder(
            tokens.to(source.lengths.device).view(1, -1, 1),
            source.memory_bank,
            memory_lengths=source.lengths,
            step=state.length,
        )
        wanted = self._attention and "std" in attentions
        attention = attentions["std"][0].cpu() if wanted else None
        return Step(
            distribution=self._output(hidden[0]),
            attention=attention,
            state=self._take_state(decoder, state),
            source_lengths=None if attention is None else source.lengths,
        )

    def _take_state(self, decoder: Any, before: DecoderState) -> DecoderState:
        """Return the state that a step has left in the decoder."""
        inside = _copy_dicts(decoder.state)
        inside.pop("src", None)
        after = replace(before, inside=inside, length=before.length + 1)
        if before.source.src is None:
            return after
        cache = {
            layer: {name: tensors.pop(name) for name in ("memory_keys", "memory_values")}
            for layer, tensors in inside["cache"].items()
        }
        if before.source.cache:
            return after
        # At the first step each sentence has one row: keep keys and values once for each sentence.
        # From now on the decoder reads only the size of the memory bank.
        source = replace(before.source, memory_bank=before.source.memory_bank[:1], cache=cache)
        return replace(after, source=source, spread=[])

    def select(self, state: DecoderState, rows: Tensor) -> DecoderState:
        """Return the state of `rows` `(new rows,)` int64, on the CPU."""
        owner = state.owner[rows]
        decoder = _with_empty_state(self._decoder)
        decoder.state = {"src": None, **_copy_dicts(state.inside)}
        index = rows.to(state.source.lengths.device)
        decoder.map_state(lambda tensor, dim: tensor.index_select(dim, index))
        inside = _copy_dicts(decoder.state)
        inside.pop("src")
        if torch.equal(owner, state.owner):
            return replace(state, inside=inside)
        if state.source.src is not None and not state.source.cache:
            # A Transformer's first step needs one row for each sentence (see `_take_state`).
            source, owner = state.source.rows(owner), torch.arange(len(owner))
            return replace(state, inside=inside, source=source, owner=owner, spread=[])
        after = replace(state, inside=inside, owner=owner, spread=[])
        # Copying the sources that are left pays once half of the sentences have gone.
        return after.compact() if 2 * len(torch.unique(owner)) <= len(state.source) else after

    def join(self, states: Sequence[DecoderState]) -> DecoderState:
        """Return one state of all rows of recurrent states."""
        states = [state.compact() for state in states]
        banks = [state.source.memory_bank for state in states]
        longest = max(len(bank) for bank in banks)
        sizes = [0, *(len(state.source) for state in states)]
        starts = torch.tensor(sizes).cumsum(0).tolist()
        hidden = zip(*(state.inside["hidden"] for state in states), strict=True)
        inside = {
            "hidden": tuple(torch.cat(layers, 1) for layers in hidden),
            "input_feed": torch.cat([state.inside["input_feed"] for state in states], 1),
            "coverage": None,
        }
        source = DecoderSource(
            torch.cat([pad(bank, (0, 0, 0, 0, 0, longest - len(bank))) for bank in banks], 1),
            torch.cat([state.source.lengths for state in states]),
        )
        owner = torch.cat(
            [state.owner + start for state, start in zip(states, starts, strict=False)]
        )
        return DecoderState(inside, source, owner, max(state.length for state in states))


def _with_empty_state(decoder: Any) -> Any:
    """Return a copy of a decoder with the same weights and an empty state of its own."""
    decoder = copy(decoder)
    decoder.state = {}
    return decoder


def _copy_dicts(tree: dict[str, Any]) -> dict[str, Any]:
    """Copy nested dicts but not tensors: OpenNMT-py's decoders never overwrite these."""
    return {
        key: _copy_dicts(value) if isinstance(value, dict) else value for key, value in tree.items()
    }
