"""The same as `onmt-entmax prepare mt`."""

from onmt_entmax.cli.main import door

door("prepare mt")
