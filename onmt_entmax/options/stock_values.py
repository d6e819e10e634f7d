"""Values of OpenNMT-py's options that have another name here, are refused, or are assumed.

`stock.py` is about whole options.
"""

from collections.abc import Mapping

# By option and value in OpenNMT-py: this package's name of the same value.
EQUAL_VALUES: Mapping[tuple[str, str], str] = {
    ("optim", "fusedadam"): "adam",
    ("generator_function", "log_softmax"): "softmax",
    ("reset_optim", "keep_states"): "none",  # states are kept, with the options given now
    ("reset_optim", "states"): "all",  # which also counts updates from 0
}

# By refused value: a hint. A value means the same in all options that have it.
VALUE_HINTS: Mapping[str, str] = {
    "lm": "language models are not supported; use OpenNMT-py for them",
    "transformer_lm": "language models are not supported; use OpenNMT-py for them",
    "ggnn": "graph encoders are not supported; use OpenNMT-py for them",
    "cnn": "convolutional models are not supported; use transformer",
    "SRU": "use LSTM or GRU",
    "sparseadam": "use adam",
    "inferfeats": "source features are not supported",
    "filterfeats": "source features are not supported",
    # OpenNMT-entmax
    "tsallis15": "OpenNMT-entmax's tsallis15 is entmax15 here",
    "tsallis": "OpenNMT-entmax's tsallis is entmax here",
    "smart": "OpenNMT-entmax's smart is plateau here",
}

# Options that OpenNMT-py, too, accepts without the option that they need (`Option.needs`), and then
# does not read: a note says so. For all other options it is an error.
NOTED_IF_UNREAD = frozenset(
    "alpha beta coverage_penalty early_stopping early_stopping_criteria ignore_when_blocking "
    "phrase_table random_sampling_temp tensorboard_log_dir".split()
)

# By flag: the value that it has on the command line if none follows.
BARE_FLAGS: Mapping[str, str] = {"gpu": "0"}
