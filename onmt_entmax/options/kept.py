"""The training options that `export` and `import-onmt` keep in the model folders they write."""

TRAINING_OPTIONS = (
    "optim",
    "learning_rate",
    "decay_method",
    "warmup_steps",
    "max_grad_norm",
    "adam_beta2",
    "batch_size",
    "batch_type",
    "accum_count",
    "train_steps",
    "train_epochs",
    "max_seconds",
    "dropout",
    "attention_dropout",
    "label_smoothing",
    "attention_warmup_steps",
    "average_decay",
    "calibrate",
    "selection",
    "seed",
)
"""Options that tell how a model was trained; paths are left out, since they may be private"""
