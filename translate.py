"""The same as `onmt-entmax translate`."""

from onmt_entmax.cli.main import run_as_script

run_as_script("translate")
