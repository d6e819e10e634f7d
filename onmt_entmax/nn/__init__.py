"""Layers of OpenNMT-py models: sparse attention, the output layer, and faster LSTMs."""
