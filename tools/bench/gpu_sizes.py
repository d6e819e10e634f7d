"""Networks with their batches, in the sizes in which `gpu.py` checks and times them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from onmt_entmax.data.batch import Batch
from tools.bench import texts, transformer_models
from tools.bench.gpu_networks import Lstm, Network, Transformer


@dataclass(frozen=True)
class Size:
    """A network and its batches.

    Attributes:
        network: to train.
        pairs: sentence pairs of a batch.
    """

    network: Network
    pairs: int

    def batches(self, count: int) -> list[Batch]:
        """Return so many batches; those of a bucket of 16 have pairs of similar length."""
        return list(islice(self.network.corpus.batches(self.pairs, 16 * self.pairs), count))


CHARACTERS = Lstm("2x300 V=776", units=300, text=texts.INFLECTION)
WORDS = Lstm("2x500 V=18,000", units=500, text=texts.WORDS)
BASE = Transformer("Transformer base", text=texts.SENTENCES, size=transformer_models.SIZES["base"])
SMALL_LSTM = Lstm("2x24 V=776", units=24, text=texts.INFLECTION)
TINY = Transformer("tiny Transformer", text=texts.INFLECTION, size=transformer_models.SIZES["tiny"])

FEW_CHARACTERS = Size(CHARACTERS, pairs=64)
MANY_CHARACTERS = Size(CHARACTERS, pairs=256)
MANY_WORDS = Size(WORDS, pairs=256)
SENTENCES = Size(BASE, pairs=164)  # 4,100 target tokens a step

# A GPU is timed with these.
SIZES = (FEW_CHARACTERS, MANY_CHARACTERS, MANY_WORDS, SENTENCES)
# A check of updates computes them in float64 on the CPU, too, which takes long for large models.
UPDATED = (FEW_CHARACTERS, Size(TINY, pairs=16))
# A check of graphs needs one size for each network.
CAPTURED = (MANY_CHARACTERS, MANY_WORDS, SENTENCES)
# An encoder is timed with the large batches.
ENCODED = (MANY_CHARACTERS, MANY_WORDS)
# On a CPU all parts only try themselves, with these.
SMALL = (Size(SMALL_LSTM, pairs=16), Size(TINY, pairs=16))
