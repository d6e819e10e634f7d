"""A setting of decoding that commands share with training, which decodes its development set."""

from typing import Literal

TargetSymbols = Literal["any", "language"]
TARGET_SYMBOLS: TargetSymbols = "any"
"""Which target symbols decoding allows by default: all, since certificates are then about all that
the model can write"""
