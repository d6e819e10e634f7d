"""OpenNMT-py's LSTM encoder and decoder with derived backward passes: same weights and results."""
