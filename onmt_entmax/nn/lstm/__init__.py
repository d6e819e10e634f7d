"""Recurrent layers of OpenNMT-py with derived backward passes; same weights, same results."""
