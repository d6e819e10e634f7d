"""The rates of a summary as lines of text."""

from collections.abc import Mapping
from typing import Any

_WIDTH = 43  # characters of the longest label, `highest scored output proven (or the above)`


def rate_lines(summary: Mapping[str, Any], best: str = "most probable") -> list[str]:
    """Return a line for each rate that a summary has; the values stand below each other.

    Args:
        summary: the summary, as `Summary.as_dict` returns it.
        best: what the labels call the best output, such as `highest scored`.
    """
    # By key of the summary: label and unit.
    described = {
        "exhaustive_percent": ("every possible output found (exhaustive)", "%"),
        "argmax_proven_percent": (f"{best} output proven (or the above)", "%"),
        "mbr_proven_percent": ("minimum Bayes risk proven", "%"),
        "mbr_other_percent": ("not the most probable output", "%"),
        "single_hypothesis_percent": ("only one output possible", "%"),
        "several_hypotheses_percent": ("more than one output found", "%"),
        "unknown_percent": ("source tokens outside the vocabulary", "%"),
        "mean_output_support": ("next tokens of nonzero probability", "per prefix searched"),
        "mean_attention_support": ("source positions of nonzero attention", "per step"),
    }
    if not summary["unknown_tokens"]:
        del described["unknown_percent"]
    lines = [
        _line(label, f"{summary[key]:6.2f} {unit}")
        for key, (label, unit) in described.items()
        if key in summary
    ]
    if "satisfied_percent" in summary:
        least, most = (f"{percent:.2f}" for percent in summary["satisfied_percent"])
        until = f" to {most} %" if most != least else ""
        lines.append(_line("mean probability that the constraints hold", f"{least:>6} %{until}"))
    return lines


def _line(label: str, value: str) -> str:
    """Return an indented line whose value stands below those of the other lines."""
    return f"  {label:{_WIDTH}} {value}"
