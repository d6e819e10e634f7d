"""Headings under which `train -h` lists options; `options/train_table.py` has their order.

An option without a heading is listed by `--help-all` alone.
"""

SPARSE = "Sparse attention and output"
VALIDATION = "Validation"
LIMITS = "Limits and speed"
SMOOTHING = "Smoothing"
# OpenNMT-py also has most options under the following headings.
RUN = "Run (OpenNMT-py's options from here on)"
DATA = "Corpora and batches"
MODEL = "Model"
OPTIMISER = "Optimiser"
# The short help leaves this heading out, so `--help-all` alone lists its options.
TRANSFORMER = "Attention of a Transformer"
