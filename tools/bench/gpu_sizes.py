"""Networks with their batches, in the sizes in which `gpu.py` checks and times them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from onmt_entmax.data.batch import Batch
from tools.bench import texts, transformer_models
from tools.bench.gpu_networks import Lstm, Network, Transformer

BUCKET_BATCHES = 16  # whose pairs are sorted by length together


@dataclass(frozen=True)
class Size:
    """A network and its batches.

    Attributes:
        network: the network to train.
        pairs: number of sentence pairs in a batch.
    """

    network: Network
    pairs: int

    def batches(self, count: int) -> list[Batch]:
        """Return the first batches; in each, the pairs are of similar length."""
        batches = self.network.corpus.batches(self.pairs, BUCKET_BATCHES * self.pairs)
        return list(islice(batches, count))


CHARACTERS = Lstm("2x300 V=776", units=300, text=texts.INFLECTION)
WORDS = Lstm("2x500 V=18,000", units=500, text=texts.WORDS)
BASE = Transformer("Transformer base", text=texts.SENTENCES, size=transformer_models.SIZES["base"])
SMALL_LSTM = Lstm("2x24 V=776", units=24, text=texts.INFLECTION)
TINY = Transformer("tiny Transformer", text=texts.INFLECTION, size=transformer_models.SIZES["tiny"])

FEW_CHARACTERS = Size(CHARACTERS, pairs=64)
MANY_CHARACTERS = Size(CHARACTERS, pairs=256)
MANY_WORDS = Size(WORDS, pairs=256)
SENTENCES = Size(BASE, pairs=164)  # 4,100 target tokens a step

# Training steps on a GPU are timed with these.
STEP_SIZES = (FEW_CHARACTERS, MANY_CHARACTERS, MANY_WORDS, SENTENCES)
# Updates are checked with these: float64 on the CPU takes long for large models.
UPDATE_CHECK_SIZES = (FEW_CHARACTERS, Size(TINY, pairs=16))
# CUDA graphs are checked with these, one size of each network.
GRAPH_CHECK_SIZES = (MANY_CHARACTERS, MANY_WORDS, SENTENCES)
# The LSTM encoder is timed with the large batches.
ENCODER_SIZES = (MANY_CHARACTERS, MANY_WORDS)
# All parts run with these on a CPU, which is a smoke test of the benchmark.
CPU_SIZES = (Size(SMALL_LSTM, pairs=16), Size(TINY, pairs=16))
