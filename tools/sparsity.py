"""The same as `onmt-entmax sparsity`."""

from onmt_entmax.cli.main import door

door("sparsity")
