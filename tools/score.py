"""The same as `onmt-entmax score`."""

from onmt_entmax.cli.main import door

door("score")
