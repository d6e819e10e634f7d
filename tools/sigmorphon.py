"""The same as `onmt-entmax sigmorphon`."""

from onmt_entmax.cli.main import door

door("sigmorphon")
