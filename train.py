#!/usr/bin/env python3
"""Train a model: train.py -config FILE.yaml [-key value ...]"""

import sys

from onmt_entmax.commands import run_command

if __name__ == "__main__":
    sys.exit(run_command("train", sys.argv[1:]))
