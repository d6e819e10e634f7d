"""The same as `onmt-entmax translate`."""

from onmt_entmax.cli.main import run_as_script

if __name__ == "__main__":  # not in data workers that start anew, which import this file
    run_as_script("translate")
