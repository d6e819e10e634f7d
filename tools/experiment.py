"""The same as `onmt-entmax experiment`."""

from onmt_entmax.cli.main import door

door("experiment")
