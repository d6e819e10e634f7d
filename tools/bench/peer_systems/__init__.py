"""The systems that `tools.bench.peers` compares: the commands with which each trains and decodes.

`system.py` has the interface, and `data.py` the data. Each other file has a system, and yoyodyne's
has two. All read the tokens that `onmt-entmax prepare table` writes. Each peer is installed in a
virtual environment of its own.

The settings of a peer are those of its own examples for short strings, if there are any:

- yoyodyne: `tests/testdata/configs` of its repository, with which its tests learn Turkish
  inflection and Icelandic pronunciation. An LSTM of 256 states and embeddings of 64 on both sides,
  Adam at 0.01, batches of 100, label smoothing 0.1, gradients clipped at 3.
- Joey NMT: `configs/rnn_reverse.yaml`, which learns to reverse short strings. One layer, Adam at
  0.001, its initialisation and attention. The sizes are those of yoyodyne, and batches have 32
  pairs, since its 64 states are too few for words. Its schedule, `plateau`, fails with PyTorch
  2.13, whose scheduler has no `verbose`, so the rate is constant.
- Eole: its recipes are large Transformers for GPUs, so these are its defaults (recurrent, dropout
  0.3, batches of 64) with one layer, yoyodyne's sizes, and the learning rate that its help
  recommends for Adam.

No peer plans for a time. Each validates every 2,000 training examples, on a sample of the
development set, and its own validations choose the checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence

from tools.bench.peer_systems.eole import Eole
from tools.bench.peer_systems.joeynmt import JoeyNMT
from tools.bench.peer_systems.ours import Ours
from tools.bench.peer_systems.system import System
from tools.bench.peer_systems.yoyodyne import Yoyodyne, YoyodynePointer

SYSTEMS: Sequence[type[System]] = (Ours, Yoyodyne, YoyodynePointer, JoeyNMT, Eole)
