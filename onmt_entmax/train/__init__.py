"""Training: the loop, the optimiser and its schedules, validation, and resuming."""
