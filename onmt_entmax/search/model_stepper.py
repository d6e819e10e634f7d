"""The stepper that drives a model: OpenNMT-py's decoder and our output layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from onmt_entmax.nn.lstm.decoder import FastInputFeedRNNDecoder
from onmt_entmax.nn.lstm.encoder import FastRNNEncoder, PreparedEncoder
from onmt_entmax.nn.lstm.stepping import BatchSlots, DecoderStep, SourceMemory
from onmt_entmax.nn.output import Distribution, PreparedOutput
from onmt_entmax.search.expansion import Ints
from onmt_entmax.search.stepper import SearchError, Step

# The decoder of a recurrent model without OpenNMT-py's step: the same numbers, sooner.

if TYPE_CHECKING:
    from onmt_entmax.nn.output import PreparedOutput


@dataclass(frozen=True)
class RecurrentState:
    """The rows of a search: vectors, and whose source each attends to."""

    vectors: Tensor
    """(rows, size), see `DecoderStep`"""
    memory: SourceMemory
    owner: Ints
    """(rows,) place in `memory` of each row's sentence"""
    seats: list[BatchSlots] = field(default_factory=list, repr=False)
    """Once it was needed; shared by the states that agree on `owner`."""

    def seating(self) -> BatchSlots:
        """Where the rows sit, see `BatchSlots`."""
        if not self.seats:
            self.seats.append(self._seated())
        return self.seats[0]

    def _seated(self) -> BatchSlots:
        counts = np.bincount(self.owner, minlength=len(self.memory))
        width = int(counts.max())
        starts = np.cumsum(counts) - counts
        order = np.argsort(self.owner, kind="stable")
        seat = np.empty_like(self.owner)
        seat[order] = np.arange(len(order)) - starts[self.owner[order]]
        index = self.owner * width + seat
        if len(index) == len(self.memory) * width and np.array_equal(index, np.arange(len(index))):
            return BatchSlots(None, width)
        return BatchSlots(torch.from_numpy(index).to(self.vectors.device), width)

    def select(self, rows: Tensor) -> RecurrentState:
        """The state of `rows` (new rows,) int64, on the CPU."""
        vectors = self.vectors.index_select(0, rows.to(self.vectors.device))
        owner = self.owner[rows.numpy()]
        if np.array_equal(owner, self.owner):
            return replace(self, vectors=vectors)
        return replace(self, vectors=vectors, owner=owner, seats=[]).compact(0.5)

    def compact(self, share: float = 1.0) -> RecurrentState:
        """The same state without the sentences that no row belongs to, where not more than this
        share of them are used: copying the others has its price."""
        counts = np.bincount(self.owner, minlength=len(self.memory))
        used = np.flatnonzero(counts)
        if len(used) == len(counts) or len(used) > share * len(counts):
            return self
        places = np.zeros(len(counts), dtype=np.int64)
        places[used] = np.arange(len(used))
        memory = self.memory.select(torch.from_numpy(used).to(self.vectors.device))
        return replace(self, memory=memory, owner=places[self.owner], seats=[])


class RecurrentDecoding:
    """Runs the decoder and the output layer of a model with prepared weights.

    Args:
        step: of its decoder.
        output: of its output layer.
        attention: whether steps return attention.
    """

    def __init__(self, step: DecoderStep, output: PreparedOutput, attention: bool) -> None:
        self._step, self._output, self._attention = step, output, attention

    def start(self, state: dict[str, Any], bank: Tensor, lengths: Tensor) -> RecurrentState:
        """The state of one row for each sentence.

        Args:
            state: of OpenNMT-py's decoder after `init_state`.
            bank: (source length, sentences, hidden).
            lengths: (sentences,)
        """
        hidden, cell = state["hidden"]
        vectors = self._step.first(hidden, cell, state["input_feed"][0])
        return RecurrentState(vectors, self._step.memory(bank, lengths), np.arange(len(lengths)))

    def step(self, state: RecurrentState, tokens: Tensor) -> Step:
        """Append `tokens` (rows,) int64 to the rows."""
        tokens = tokens.to(state.vectors.device)
        hidden, weights, vectors = self._step(state.vectors, tokens, state.memory, state.seating())
        lengths = None
        if self._attention:
            lengths = state.memory.lengths.cpu()[torch.from_numpy(state.owner)]
        return Step(
            distribution=self._output(hidden),
            attention=weights if self._attention else None,
            state=replace(state, vectors=vectors),
            source_lengths=lengths,
        )

    def join(self, states: Sequence[RecurrentState]) -> RecurrentState:
        """One state of all rows."""
        states = [state.compact() for state in states]
        starts = np.cumsum([0, *(len(state.memory) for state in states)])
        return RecurrentState(
            torch.cat([state.vectors for state in states]),
            SourceMemory.join([state.memory for state in states]),
            np.concatenate([s.owner + n for s, n in zip(states, starts[:-1], strict=True)]),
        )


if TYPE_CHECKING:
    from onmt_entmax.data.batch import Batch
    from onmt_entmax.data.vocabulary import Vocabulary
    from onmt_entmax.model import SparseNMTModel


@dataclass(frozen=True)
class Source:
    """What the decoder knows of the source: one copy for each sentence, not for each row."""

    memory_bank: Tensor
    """(source length, sentences, hidden)"""
    lengths: Tensor
    """(sentences,)"""
    src: Tensor | None = None
    """(source length, sentences, 1) ids, of a Transformer"""
    cache: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    """Keys and values of a Transformer's layers, (sentences, heads, source length, size)"""

    def __len__(self) -> int:
        return len(self.lengths)

    def rows(self, owner: Tensor) -> Source:
        """The source of each row, or of chosen sentences.

        Args:
            owner: (rows,) sentence of each row, on the CPU.
        """
        if torch.equal(owner, torch.arange(len(self))):
            return self
        if len(self) == 1:  # a view suffices

            def pick(tensor: Tensor, dim: int) -> Tensor:
                shape = [-1] * tensor.dim()
                shape[dim] = len(owner)
                return tensor.expand(shape)
        else:
            index = owner.to(self.lengths.device)

            def pick(tensor: Tensor, dim: int) -> Tensor:
                return tensor.index_select(dim, index)

        return Source(
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
    """One state of an OpenNMT-py decoder, taken out of the module that normally keeps it."""

    inside: dict[str, Any]
    """The decoder's own `state`, without what is in `source`."""
    source: Source
    owner: Tensor
    """(rows,) place in `source` of each row's sentence, on the CPU"""
    length: int = 0
    """Tokens taken so far, `bos` included."""
    spread: list[Source] = field(default_factory=list, repr=False)
    """`source` for each row, once it was needed; shared by the states that agree on `owner`."""

    def source_rows(self) -> Source:
        """The source of each row."""
        if not self.spread:
            self.spread.append(self.source.rows(self.owner))
        return self.spread[0]

    def compact(self) -> DecoderState:
        """The same state without the sentences that no row belongs to."""
        used, owner = torch.unique(self.owner, return_inverse=True)
        if len(used) == len(self.source):
            return self
        return replace(self, source=self.source.rows(used), owner=owner, spread=[])


State = DecoderState | RecurrentState


def _copy_dicts(tree: dict[str, Any]) -> dict[str, Any]:
    """Copy nested dicts, but not tensors: OpenNMT-py's decoders replace and never overwrite
    them."""
    return {
        key: _copy_dicts(value) if isinstance(value, dict) else value for key, value in tree.items()
    }


class ModelStepper:
    """Runs the decoder of a model, recurrent or Transformer.

    OpenNMT-py's decoders keep their state inside the module; here each call works with a copy of
    the decoder that shares its weights, so that several threads may search with one model. An
    input-feeding LSTM runs without OpenNMT-py's step where `RecurrentDecoding` can; the
    weights are those of the moment when the stepper was made.

    Args:
        model: in evaluation mode.
        vocabulary: of the target.
        attention: whether `step` returns attention.

    Raises:
        ValueError: if the model is in training mode, or its output layer has another size than the
            vocabulary.
    """

    def __init__(
        self, model: SparseNMTModel, vocabulary: Vocabulary, attention: bool = False
    ) -> None:
        if model.training:
            raise ValueError(
                "search needs the model in evaluation mode (call model.eval()): dropout is random"
            )
        size = model.generator.weight.shape[0]
        if size != len(vocabulary):
            raise ValueError(
                f"the model has {size} output symbols, the target vocabulary {len(vocabulary)}"
            )
        self.model = model
        self.attention = attention
        self.bos, self.eos = vocabulary.bos, vocabulary.eos
        self.excluded: tuple[int, ...] = (vocabulary.pad, vocabulary.bos)
        self.vocabulary_size = size
        self.dense = model.generator.alpha == 1
        # A Transformer's position is one number for the whole batch.
        self.can_join = not hasattr(model.decoder, "transformer_layers")
        self._encoder: PreparedEncoder | None = None
        if isinstance(model.encoder, FastRNNEncoder):
            words = model.encoder.embeddings.word_lut.num_embeddings
            self._encoder = model.encoder.prepared(words)
        output = PreparedOutput(model.generator.weight, model.generator.bias, model.generator.alpha)
        self._output: Callable[[Tensor], Distribution] = output
        self._recurrent: RecurrentDecoding | None = None
        if isinstance(model.decoder, FastInputFeedRNNDecoder):
            step = model.decoder.prepared_step(size)
            self._recurrent = None if step is None else RecurrentDecoding(step, output, attention)

    def double(self) -> ModelStepper:
        """A stepper of a copy of the model in float64, always by OpenNMT-py's own decoder: a second
        opinion.

        Raises:
            SearchError: if the encoder is OpenNMT-py's `mean`, which computes in float32 only.
        """
        if type(self.model.encoder).__name__ == "MeanEncoder":
            raise SearchError("OpenNMT-py's mean encoder cannot be computed in float64 (verify)")
        other = copy(self)
        self.model.decoder.state = {}  # of the last batch, with its graph if that was training
        other.model = deepcopy(self.model).double()
        other._recurrent = other._encoder = None
        other._output = other.model.generator.log_probs
        return other

    def start(self, batch: Batch) -> State:
        """Encode the batch; returns the state of one row for each sentence, in its order."""
        if isinstance(self._output, PreparedOutput):
            self._output.begin()
        batch = batch.to(next(self.model.parameters()).device)
        encode = self._encoder or self.model.encoder
        encoder_state, memory_bank, lengths = encode(batch.source, batch.source_lengths)
        decoder = self._decoder()
        decoder.init_state(batch.source, memory_bank, encoder_state)
        if self._recurrent is not None:
            return self._recurrent.start(decoder.state, memory_bank, lengths)
        inside = _copy_dicts(decoder.state)
        source = Source(memory_bank, lengths, inside.pop("src", None))
        return DecoderState(inside, source, torch.arange(len(lengths)))

    def step(self, state: State, tokens: Tensor) -> Step:
        """Append `tokens` (rows,) int64 to the rows."""
        if isinstance(state, RecurrentState):
            assert self._recurrent is not None
            return self._recurrent.step(state, tokens)
        decoder, source = self._decoder(), state.source_rows()
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
        attention = attentions["std"][0] if self.attention and "std" in attentions else None
        return Step(
            distribution=self._output(hidden[0]),
            attention=attention,
            state=self._take_state(decoder, state),
            source_lengths=None if attention is None else source.lengths,
        )

    def _decoder(self) -> Any:
        """The model's decoder with a state of its own: other threads may be at work with it."""
        decoder = copy(self.model.decoder)
        decoder.state = {}
        return decoder

    def _take_state(self, decoder: Any, before: DecoderState) -> DecoderState:
        """The state after a step, out of the decoder."""
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
        # The first step has one row for each sentence: what it computed of the source is kept once.
        # From now on the decoder reads no more of the memory than how many rows it has.
        source = replace(before.source, memory_bank=before.source.memory_bank[:1], cache=cache)
        return replace(after, source=source, spread=[])

    def select(self, state: State, rows: Tensor) -> State:
        """Return the state of `rows` (new rows,) int64."""
        if isinstance(state, RecurrentState):
            return state.select(rows)
        owner = state.owner[rows]
        decoder = self._decoder()
        decoder.state = {"src": None, **_copy_dicts(state.inside)}
        index = rows.to(state.source.lengths.device)
        decoder.map_state(lambda tensor, dim: tensor.index_select(dim, index))
        inside = _copy_dicts(decoder.state)
        inside.pop("src")
        if torch.equal(owner, state.owner):
            return replace(state, inside=inside)
        if state.source.src is not None and not state.source.cache:
            # A Transformer's first step computes the source once for each row (see _take_state).
            source, own = state.source.rows(owner), torch.arange(len(owner))
            return replace(state, inside=inside, source=source, owner=own, spread=[])
        after = replace(state, inside=inside, owner=owner, spread=[])
        # Copying the source of the sentences that are left is worth it once half have gone.
        return after.compact() if 2 * len(torch.unique(owner)) <= len(state.source) else after

    def join(self, states: Sequence[State]) -> State:
        """Return one state of all rows of recurrent states."""
        if self._recurrent is not None:
            return self._recurrent.join(cast("Sequence[RecurrentState]", states))
        own = [state.compact() for state in cast("Sequence[DecoderState]", states)]
        banks = [state.source.memory_bank for state in own]
        longest = max(len(bank) for bank in banks)
        sizes = [0, *(len(state.source) for state in own)]
        starts = torch.tensor(sizes).cumsum(0).tolist()
        hidden = zip(*(state.inside["hidden"] for state in own), strict=True)
        inside = {
            "hidden": tuple(torch.cat(layers, 1) for layers in hidden),
            "input_feed": torch.cat([state.inside["input_feed"] for state in own], 1),
            "coverage": None,
        }
        source = Source(
            torch.cat([pad(bank, (0, 0, 0, 0, 0, longest - len(bank))) for bank in banks], 1),
            torch.cat([state.source.lengths for state in own]),
        )
        owner = torch.cat([state.owner + start for state, start in zip(own, starts, strict=False)])
        return DecoderState(inside, source, owner, max(state.length for state in own))
