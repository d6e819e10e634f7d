"""Parts of the tools of inflection: rows of the shared task, made-up rows, kinds of errors."""
