"""Exactness reports, their summaries and pages, and measures of accuracy."""
