"""Classifiers of Martins and Astudillo (2016): multi-label, and attention over sentence pairs."""
