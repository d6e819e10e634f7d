"""`ModelStepper` runs a model in a search: encoder, decoder (in one of two ways), output layer.

`OpenNMTDecoding` runs any of OpenNMT-py's decoders. `RecurrentDecoding` runs an input-feeding LSTM
with prepared weights, and computes the same numbers faster. Both have the methods of `Stepper`, but
start from an encoded source; support for another decoder would be a third such class.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from onmt_entmax.nn.output import OutputLayer
from onmt_entmax.nn.parts import DecoderPart
from onmt_entmax.nn.prepared_output import PreparedOutput
from onmt_entmax.search.opennmt_decoding import OpenNMTDecoding, with_empty_state
from onmt_entmax.search.recurrent_decoding import RecurrentDecoding
from onmt_entmax.search.stepper import SearchError, Step

if TYPE_CHECKING:
    from onmt_entmax.data.batch import Batch
    from onmt_entmax.data.vocabulary import Vocabulary
    from onmt_entmax.model import SparseNMTModel


class ModelStepper:
    """Runs a model, recurrent or Transformer; see `Stepper`.

    The weights must not change while it is used, since it prepares some of them. Several threads
    may search with it.

    Args:
        model: a model in evaluation mode.
        vocabulary: the target vocabulary.
        attention: whether `step` returns attention.
        temperature: the scores of the output layer are divided by it.
        dtype: `torch.bfloat16` to round the factors of products in LSTMs to this type; None: they
            have the type of the weights.
        plain: whether to run OpenNMT-py's own modules, whatever the decoder is, and prepare no
            weights.

    Attributes are those of `Stepper`; `excluded` has the start and the padding symbol.

    Raises:
        SearchError: if a dtype is given, and the decoder is no input-feeding LSTM.
        ValueError: if the model is in training mode, or the size of its output layer is not that of
            the vocabulary.
    """

    def __init__(
        self,
        model: SparseNMTModel,
        vocabulary: Vocabulary,
        attention: bool = False,
        temperature: float = 1.0,
        dtype: torch.dtype | None = None,
        *,
        plain: bool = False,
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
        self._model, self._vocabulary = model, vocabulary
        self._attention, self._temperature = attention, temperature
        self.bos, self.eos = vocabulary.bos, vocabulary.eos
        self.excluded: tuple[int, ...] = (vocabulary.pad, vocabulary.bos)
        self.vocabulary_size = size
        self.dense = model.generator.alpha == 1
        self.can_join = model.decoder.can_join
        self._encoder = model.encoder if dtype is None else model.encoder.with_matmul_dtype(dtype)
        generator = _at_temperature(model.generator, temperature)
        self._decoding: OpenNMTDecoding | RecurrentDecoding
        if plain:
            self._decoding = OpenNMTDecoding(model.decoder, generator.log_probs, attention)
        else:
            self._decoding = _prepared_decoding(model.decoder, generator, attention, dtype)

    def double(self) -> ModelStepper:
        """Return a stepper of a float64 copy of the model, which OpenNMT-py's own modules run.

        Raises:
            SearchError: if the encoder is OpenNMT-py's `mean`, which computes in float32 only.
        """
        if self._model.encoder.is_float32_only:
            raise SearchError("OpenNMT-py's mean encoder cannot be computed in float64 (verify)")
        # The decoder may still have the state of the last training batch, whose graph cannot be
        # copied. No search needs it: searches keep their own states.
        self._model.decoder.state = {}
        model = deepcopy(self._model).double()
        return ModelStepper(model, self._vocabulary, self._attention, self._temperature, plain=True)

    def start(self, batch: Batch) -> Any:
        """Encode a batch; return a state with one row for each sentence, in the batch's order."""
        batch = batch.to(next(self._model.parameters()).device)
        encoder_state, memory_bank, lengths = self._encoder(batch.source, batch.source_lengths)
        decoder = with_empty_state(self._model.decoder)
        decoder.init_state(batch.source, memory_bank, encoder_state)
        return self._decoding.start(decoder.state, memory_bank, lengths)

    def source_lengths(self, batch: Batch) -> list[int]:
        """Return the number of source tokens of each sentence, unknown ones included."""
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


def _prepared_decoding(
    decoder: DecoderPart, generator: OutputLayer, attention: bool, dtype: torch.dtype | None
) -> OpenNMTDecoding | RecurrentDecoding:
    """Return the steps of a decoder and an output layer whose weights are prepared if they can be.

    Args:
        decoder: the decoder of a model.
        generator: its output layer, at the temperature of the search.
        attention: whether steps return attention.
        dtype: see `ModelStepper`.

    Raises:
        SearchError: if a dtype is given, and the decoder cannot be prepared.
    """
    output = PreparedOutput(generator.weight, generator.bias, generator.alpha)
    step = decoder.search_step(len(generator.weight), dtype)
    if step is not None:
        return RecurrentDecoding(step, output, attention)
    if dtype is not None:
        raise SearchError("matmul_dtype: bfloat16 is of input-feeding LSTM decoders; omit it")
    return OpenNMTDecoding(decoder, output, attention)


def _at_temperature(layer: OutputLayer, temperature: float) -> OutputLayer:
    """Return an output layer whose scores are divided by a temperature."""
    if temperature == 1:
        return layer
    layer = deepcopy(layer)
    with torch.no_grad():
        layer.weight.div_(temperature)
        layer.bias.div_(temperature)
    return layer
