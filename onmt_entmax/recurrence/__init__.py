"""The LSTM encoder and the input-feeding decoder: their definition, and faster equal forms."""
