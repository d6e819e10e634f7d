"""The same as `onmt-entmax translate`."""

from onmt_entmax.cli.main import door

door("translate")
