"""Parts of `tools/sparsity.py`: forced decoding, the counting of nonzeros, tables and picture."""
