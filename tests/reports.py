"""Certificates and lines of exactness reports."""

import json
import math
from typing import Any

from onmt_entmax.search import Certificate


def certificate(**changes: Any) -> Certificate:
    """Return a certificate of a support that was searched whole, except for what changes."""
    whole_support: dict[str, Any] = {
        "level": "exhaustive",
        "log_bound": -math.inf,
        "gap": math.inf,
        "proven": 1,
        "mass": 1.0,
        "dropped": 0,
        "truncated": 0,
        "excluded": 0.0,
        "log_excluded_bound": -math.inf,
        "strict": True,
    }
    return Certificate(**{**whole_support, **changes})


def record(source: str, level: str, *strings: tuple[str, float], **more: object) -> str:
    """Return a line of a report; by default, the strings are the whole support.

    Args:
        source: the input.
        level: level of the certificate.
        strings: texts with their probabilities, the best first.
        more: other keys of the record, and values in place of the defaults.
    """
    hypotheses = [{"text": text, "log_prob": None, "prob": prob} for text, prob in strings]
    mass = sum(prob for _, prob in strings)
    numbers = {"id": 0, "bound": 0.0, "mass": mass, "finished": len(strings), "excluded": 0.0}
    return json.dumps(
        {"source": source, "certificate": level, **numbers, **more, "hypotheses": hypotheses}
    )
