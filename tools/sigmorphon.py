"""`prepare` and `evaluate`: the same as `onmt-entmax prepare sigmorphon` and `evaluate`."""

from onmt_entmax.cli.main import door

door("prepare sigmorphon", "evaluate")
