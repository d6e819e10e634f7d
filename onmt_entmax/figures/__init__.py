"""Pictures of runs, sentences and sparsity, drawn with matplotlib."""
