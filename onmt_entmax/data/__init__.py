"""Data from files to padded tensors: vocabularies, corpora, transforms and batches."""
