"""The same as `onmt-entmax bleu`."""

from onmt_entmax.cli.main import door

door("bleu")
