"""Options of a training that `export` and `import-onmt` record in the model folders they write."""

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
"""They tell how a model was trained. None is a path, which would be private"""
