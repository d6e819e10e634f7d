"""The options of a training that model folders keep when `export` or `import-onmt` writes them."""

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
"""Options that tell how a model was trained; no paths, which may be private"""
