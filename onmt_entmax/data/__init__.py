"""From files to padded tensors: vocabularies, corpora and batches. Knows no model."""
