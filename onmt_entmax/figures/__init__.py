"""How pictures of runs and sentences are drawn: for `tools/figures.py`, `tools/plot_run.py`."""
