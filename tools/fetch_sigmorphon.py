"""The same as `onmt-entmax prepare fetch-sigmorphon`."""

from onmt_entmax.cli.main import door

door("prepare fetch-sigmorphon")
