#!/usr/bin/env python3
"""Translate with a model: translate.py -model FOLDER [FOLDER ...] -src FILE -output FILE"""

import sys

from onmt_entmax.commands import run_command

if __name__ == "__main__":
    sys.exit(run_command("translate", sys.argv[1:]))
