"""Inflection rules and word lists of four languages, written for this repository."""
