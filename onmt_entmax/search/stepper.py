"""What a search needs of a model: the probabilities of the next token, one step at a time.

States are values: `step` and `select` return new ones and leave the old ones usable, so that a
search may put a state aside and come back to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from onmt_entmax.model import SparseNMTModel
    from onmt_entmax.text.batch import Batch
    from onmt_entmax.text.vocabulary import Vocabulary


class Step(NamedTuple):
    """What one step computed for each row."""

    log_probs: Tensor
    """(rows, vocabulary), float, -inf outside the support; the caller may overwrite it."""
    attention: Tensor | None
    """(rows, source length), where the stepper was asked for it."""
    state: Any
    """The state after the step, for the same rows."""


class Stepper(Protocol):
    """A model that is run one token at a time over rows, each of which holds one prefix of one
    sentence."""

    bos: int
    """Id of the token that every prefix starts with."""
    eos: int
    """Id of the token that ends a string."""
    excluded: tuple[int, ...]
    """Ids that have a column but are no symbol of any string: padding and `bos`. No target contains
    them, yet a softmax gives them probability; a search never takes them and counts them as
    excluded by request."""
    vocabulary_size: int
    can_join: bool
    """Whether rows of different lengths may be in one state."""

    def start(self, batch: Any) -> Any:
        """Return the state of one row for each sentence of the batch, in the batch's order."""
        ...

    def step(self, state: Any, tokens: Tensor) -> Step:
        """Append a token to each row. `tokens` (rows,) int64; the first ones are `bos`."""
        ...

    def select(self, state: Any, rows: Tensor) -> Any:
        """Return the state of the given rows (new rows,) int64, in that order, repetitions
        allowed."""
        ...

    def join(self, states: Sequence[Any]) -> Any:
        """Return one state of all rows, in order; only called where `can_join`."""
        ...


@dataclass(frozen=True)
class DecoderState:
    """One state of an OpenNMT-py decoder, taken out of the module that normally keeps it."""

    inside: dict[str, Any]
    """The decoder's own `state`; a dict in it is never shared with another `DecoderState`."""
    memory_bank: Tensor
    """(source length, rows, hidden)"""
    lengths: Tensor
    """(rows,) source lengths"""
    length: int
    """Tokens taken so far, `bos` included."""


def _copy_dicts(tree: dict[str, Any]) -> dict[str, Any]:
    """Copy nested dicts but not the tensors, which OpenNMT-py's decoders replace and never
    overwrite."""
    return {
        key: _copy_dicts(value) if isinstance(value, dict) else value for key, value in tree.items()
    }


class ModelStepper:
    """Runs the decoder of a model, recurrent or Transformer.

    It owns the model's decoder while it works: OpenNMT-py decoders keep their state inside the
    module.

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
        self.excluded = (vocabulary.pad, vocabulary.bos)
        self.vocabulary_size = size
        # A Transformer's position is one number for the whole batch.
        self.can_join = not hasattr(model.decoder, "transformer_layers")

    def start(self, batch: Batch) -> DecoderState:
        """Encode the batch. Returns the state of one row for each sentence, in the batch's
        order."""
        batch = batch.to(next(self.model.parameters()).device)
        encoder_state, memory_bank, lengths = self.model.encoder(batch.source, batch.source_lengths)
        decoder = self.model.decoder
        decoder.init_state(batch.source, memory_bank, encoder_state)
        return DecoderState(_copy_dicts(decoder.state), memory_bank, lengths, 0)

    def step(self, state: DecoderState, tokens: Tensor) -> Step:
        """Append `tokens` (rows,) int64 to the rows."""
        decoder = self.model.decoder
        decoder.state = _copy_dicts(state.inside)
        hidden, attentions = decoder(
            tokens.to(state.lengths.device).view(1, -1, 1),
            state.memory_bank,
            memory_lengths=state.lengths,
            step=state.length,
        )
        attention = attentions["std"][0] if self.attention and "std" in attentions else None
        log_probs = self.model.generator.log_probs(hidden[0])
        after = replace(state, inside=_copy_dicts(decoder.state), length=state.length + 1)
        return Step(log_probs, attention, after)

    def select(self, state: DecoderState, rows: Tensor) -> DecoderState:
        """Return the state of `rows` (new rows,) int64."""
        rows = rows.to(state.lengths.device)
        decoder = self.model.decoder
        decoder.state = _copy_dicts(state.inside)
        decoder.map_state(lambda tensor, dim: tensor.index_select(dim, rows))
        return DecoderState(
            inside=_copy_dicts(decoder.state),
            memory_bank=state.memory_bank.index_select(1, rows),
            lengths=state.lengths.index_select(0, rows),
            length=state.length,
        )

    def join(self, states: Sequence[DecoderState]) -> DecoderState:
        """Return one state of all rows of recurrent states; memory is padded to the longest
        source."""
        longest = max(state.memory_bank.shape[0] for state in states)
        padded = [
            torch.nn.functional.pad(
                s.memory_bank, (0, 0, 0, 0, 0, longest - s.memory_bank.shape[0])
            )
            for s in states
        ]
        hidden = zip(*(state.inside["hidden"] for state in states), strict=True)
        return DecoderState(
            inside={
                "hidden": tuple(torch.cat(layers, 1) for layers in hidden),
                "input_feed": torch.cat([state.inside["input_feed"] for state in states], 1),
                "coverage": None,
            },
            memory_bank=torch.cat(padded, 1),
            lengths=torch.cat([state.lengths for state in states]),
            length=max(state.length for state in states),
        )


class EnsembleStepper:
    """Several models as one, whose probabilities are the mean of theirs; its support is the union
    of theirs.

    Args:
        steppers: at least one, all with the same target vocabulary.

    Raises:
        ValueError: if the vocabularies have different sizes or special symbols.
    """

    def __init__(self, steppers: Sequence[Stepper]) -> None:
        first = steppers[0]
        for other in steppers[1:]:
            if (other.vocabulary_size, other.bos, other.eos, other.excluded) != (
                first.vocabulary_size,
                first.bos,
                first.eos,
                first.excluded,
            ):
                raise ValueError("the models of an ensemble must have the same target vocabulary")
        self.steppers = tuple(steppers)
        self.bos, self.eos, self.excluded = first.bos, first.eos, first.excluded
        self.vocabulary_size = first.vocabulary_size
        self.can_join = all(stepper.can_join for stepper in steppers)

    def start(self, batch: Any) -> tuple[Any, ...]:
        """Return every model's state."""
        return tuple(stepper.start(batch) for stepper in self.steppers)

    def step(self, state: tuple[Any, ...], tokens: Tensor) -> Step:
        """Append `tokens` (rows,) and average; attention is the mean over the models that have
        one."""
        steps = [
            stepper.step(part, tokens) for stepper, part in zip(self.steppers, state, strict=True)
        ]
        log_probs = torch.stack([step.log_probs for step in steps])
        # logsumexp gives -inf, not nan, where every model says -inf.
        mean = log_probs.logsumexp(0) - math.log(len(steps))
        attentions = [step.attention for step in steps if step.attention is not None]
        attention = torch.stack(attentions).mean(0) if attentions else None
        return Step(mean, attention, tuple(step.state for step in steps))

    def select(self, state: tuple[Any, ...], rows: Tensor) -> tuple[Any, ...]:
        """Return every model's state of `rows`."""
        return tuple(
            stepper.select(part, rows) for stepper, part in zip(self.steppers, state, strict=True)
        )

    def join(self, states: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Join every model's states."""
        parts = zip(*states, strict=True)
        return tuple(stepper.join(part) for stepper, part in zip(self.steppers, parts, strict=True))
