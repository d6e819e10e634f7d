"""Headings under which `train -h` lists options; `options/train_table.py` has their order.

An option without a heading is listed by `--help-all` alone.
"""

SPARSE = "Sparse attention and output"
VALIDATION = "Validation"
LIMITS = "Limits and speed"
SMOOTHING = "Smoothing"
RUN = "Run (OpenNMT-py's options from here on)"
"""Options that a run of OpenNMT-py has, too; so do those of the headings below"""
DATA = "Corpora and batches"
MODEL = "Model"
OPTIMISER = "Optimiser"
TRANSFORMER = "Attention of a Transformer"
"""Listed by `--help-all` alone, as this heading is not in the short help"""
