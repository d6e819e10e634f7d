"""Lines of exactness reports."""

import json


def record(source: str, level: str, *strings: tuple[str, float], **more: object) -> str:
    """A line of a report; whatever is not said is as if the strings were all there is."""
    hypotheses = [{"text": text, "log_prob": None, "prob": prob} for text, prob in strings]
    mass = sum(prob for _, prob in strings)
    numbers = {"id": 0, "bound": 0.0, "mass": mass, "finished": len(strings), "excluded": 0.0}
    return json.dumps(
        {"source": source, "certificate": level, **numbers, **more, "hypotheses": hypotheses}
    )
