"""Settings that every test shares."""

import torch
from hypothesis import settings

# The same examples on every run, and no timing: a slow machine must not fail a correct test.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("repeatable")

# The suite runs on few cores, often beside other work; one thread is the fastest there.
torch.set_num_threads(1)
