"""The same as `onmt-entmax figures`."""

from onmt_entmax.cli.main import door

door("figures")
