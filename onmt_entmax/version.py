"""The version of this package, which releases, citations and model folders name."""

__version__ = "1.0.0"
