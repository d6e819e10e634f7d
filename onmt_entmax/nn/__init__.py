"""Layers of OpenNMT-py models: sparse attention, Transformers, the output layer and its loss."""
