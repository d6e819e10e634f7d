"""The same as `onmt-entmax import-onmt`."""

from onmt_entmax.cli.main import door

door("import-onmt")
