"""The same as `onmt-entmax train`."""

from onmt_entmax.cli.main import door

door("train")
