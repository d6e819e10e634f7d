"""The version of the package, in a module that anything can import."""

__version__ = "0.1.0"
