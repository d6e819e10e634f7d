"""The same as `onmt-entmax report`."""

from onmt_entmax.cli.main import door

door("report")
