"""The systems that `tools.bench.peers` compares: how each one is trained and decodes.

`system.py` has the interface and `data.py` the data. Each other file has a system; yoyodyne's has
two.

All of them read the tokens that `onmt-entmax prepare table` writes, so their data are the same.
Each peer is installed in a virtual environment of its own, and runs as its own command.

The peers' settings are those of their examples for short strings, as far as there are any:

- yoyodyne: `tests/testdata/configs` of its repository, with which its tests learn Turkish
  inflection and Icelandic pronunciation: an LSTM of 256 states and embeddings of 64 on both sides,
  Adam at 0.01, batches of 100, label smoothing 0.1, gradients clipped at 3.
- Joey NMT: `configs/rnn_reverse.yaml`, which reverses short strings: one layer, Adam at 0.001, its
  initialisation and attention; but the sizes of yoyodyne and batches of 32, since its 64 states are
  too few for words. Its schedule, `plateau`, fails with PyTorch 2.13, whose scheduler has no
  `verbose`, so the rate is constant.
- Eole: its recipes are large Transformers for GPUs. Its defaults (recurrent, dropout 0.3, batches
  of 64), with the learning rate that its help recommends for Adam, one layer, and yoyodyne's sizes.

No peer plans for a time. Each validates after so many training examples, on a sample of the
development set, and its own validation chooses the checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence

from tools.bench.peer_systems.eole import Eole
from tools.bench.peer_systems.joeynmt import JoeyNMT
from tools.bench.peer_systems.ours import Ours
from tools.bench.peer_systems.system import System
from tools.bench.peer_systems.yoyodyne import Yoyodyne, YoyodynePointer

SYSTEMS: Sequence[type[System]] = (Ours, Yoyodyne, YoyodynePointer, JoeyNMT, Eole)
