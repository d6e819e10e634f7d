"""The same as `onmt-entmax inflect`."""

from onmt_entmax.cli.main import door

door("inflect")
