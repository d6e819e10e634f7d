"""`onmt-entmax distill`: which outputs of a report become training pairs."""

import random
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from onmt_entmax.cli.pseudo_labels import best_text, certified_records, drawn_text, pseudo_labels
from tests.reports import record


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Records with a certain, a likely and an unlikely output, and three that make no pair.

    One of these is without proof, one has no output, and one has an unknown symbol.
    """
    lines = [
        record("lang=x +V a", "exhaustive", ("b", 1.0)),
        record("lang=x +V c", "optimal", ("d", 0.75), ("e", 0.2)),
        record("lang=x +V f", "optimal", ("g", 0.5)),
        record("lang=x +V h", "none", ("i", 0.9)),
        record("lang=x +V j", "exhaustive"),
        record("lang=x +V k", "exhaustive", ("<unk> k", 1.0)),
    ]
    path = tmp_path / "report.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


# Pairs of source and output.
CERTAIN = ("lang=x +V a", "b")
LIKELY = ("lang=x +V c", "d")
UNLIKELY = ("lang=x +V f", "g")


@pytest.mark.parametrize(
    ("least", "most", "pairs"),
    [
        pytest.param(0.75, 1.0, [CERTAIN, LIKELY], id="at the least probability"),
        pytest.param(0.76, 1.0, [CERTAIN], id="below the least"),
        pytest.param(0.5, 0.75, [LIKELY, UNLIKELY], id="at the most probability"),
        pytest.param(0.5, 0.74, [UNLIKELY], id="above the most"),
    ],
)
def test_proven_outputs_between_two_probabilities_are_kept(
    report: Path, least: float, most: float, pairs: list[tuple[str, str]]
) -> None:
    assert list(pseudo_labels(certified_records(report, least, most), best_text)) == pairs


DRAWS = 2000


def drawn(report: Path, *outputs: tuple[str, float]) -> Counter[str]:
    """Return how often each text is drawn, in `DRAWS` queries that all have these outputs."""
    report.write_text(f"{record('lang=x +V a', 'optimal', *outputs)}\n" * DRAWS)
    draw = partial(drawn_text, generator=random.Random(1))
    return Counter(text for _, text in pseudo_labels(certified_records(report, 0.4, 1.0), draw))


def test_outputs_are_drawn_by_their_probabilities(tmp_path: Path) -> None:
    counts = drawn(tmp_path / "report.jsonl", ("b", 0.5), ("c", 0.3), ("d", 0.2))
    shares = {text: count / DRAWS for text, count in counts.items()}
    # The seed is fixed; four standard deviations of such shares are below 0.05.
    assert shares == pytest.approx({"b": 0.5, "c": 0.3, "d": 0.2}, abs=0.05)


def test_a_query_whose_draw_has_an_unknown_symbol_is_left_out(tmp_path: Path) -> None:
    counts = drawn(tmp_path / "report.jsonl", ("b", 0.5), ("<unk>", 0.5))
    assert set(counts) == {"b"}
    assert counts["b"] / DRAWS == pytest.approx(0.5, abs=0.05)
