"""Matrices of trainings: their files, runs, measures and tables, for `onmt-entmax experiment`."""
