"""The same as `onmt-entmax combine`."""

from onmt_entmax.cli.main import door

door("combine")
