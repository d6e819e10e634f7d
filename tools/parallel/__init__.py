"""Parallel text: pairs of lines, the corpora that `tools/prepare_mt.py` knows, and their text."""
