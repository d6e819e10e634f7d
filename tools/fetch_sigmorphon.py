"""The same as `onmt-entmax fetch-sigmorphon`."""

from onmt_entmax.cli.main import door

door("fetch-sigmorphon")
