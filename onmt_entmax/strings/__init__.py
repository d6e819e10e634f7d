"""A model's strings: how the columns of a table become tokens, and tokens become text again."""
