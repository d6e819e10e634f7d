"""Layers that sit inside OpenNMT-py models."""
