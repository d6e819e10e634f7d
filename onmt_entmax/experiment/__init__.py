"""Parts of `tools/experiment.py`: what a matrix says, its runs, their measures, its table."""
