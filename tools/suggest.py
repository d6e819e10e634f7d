"""The same as `onmt-entmax suggest`."""

from onmt_entmax.cli.main import door

door("suggest")
