"""Measures of a validation as people write them."""


def measure_text(name: str, value: float) -> str:
    """Return a measure with its name and unit: `exact match 61.96 %`."""
    if name == "loss":
        return f"loss {value:.4f}"
    if name == "bleu":
        return f"BLEU {value:.2f}"
    return f"{name.replace('_', ' ')} {value:.2f} %"
