"""The same as `onmt-entmax distill`."""

from onmt_entmax.cli.main import door

door("distill")
