"""Records of a few sentences, pages that are written of them, and what a page shows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.cli.report_quality import coverage_curve, with_references
from onmt_entmax.report.coverage import CoverageCurve
from onmt_entmax.report.lattice import build_lattice
from onmt_entmax.report.page import write_page
from onmt_entmax.report.page_drawing import drawing
from tests.report.browser import Browser
from tests.search.table_steppers import TableStepper
from tests.search.tables import DRAW, EOS, D, E, N, W

TITLE = "A <b>report</b>"
# The tokens of a table, by their ids.
NAMES = ["<s>", "</s>", "w", "n", "e", "d", "x"]
# A text that would change the page if it were not escaped.
EVIL = "</script><script>hacked = 1</script> <!-- <b>&amp;\u2028"


def record(
    number: int, source: str, texts: Mapping[str, float], level: str, **more: Any
) -> dict[str, Any]:
    """Return a record of a report.

    Args:
        number: number of the line, from 0.
        source: text of the line.
        texts: texts of the hypotheses, with their probabilities.
        level: level of the certificate.
        more: further fields of the record, or other values of its fields.
    """
    hypotheses = [
        {"text": text, "prob": prob, "log_prob": math.log(prob)} for text, prob in texts.items()
    ]
    base = {"id": number, "source": source, "certificate": level, "bound": 0.0, "dropped": 0}
    base |= {"mass": sum(texts.values()), "truncated": 0, "excluded": 0.0, "finished": len(texts)}
    return {**base, "hypotheses": hypotheses, **more}


RECORDS = [
    record(0, "+PST d r a w", {"w e d": 0.45, "w n": 0.32}, "optimal", bound=0.15, dropped=2),
    record(1, "Der Baum", {"the tree": 0.7, "a tree": 0.3}, "exhaustive"),
    record(2, EVIL, {EVIL: 0.9}, "none", bound=0.5),
    record(3, "s a t", {"s i t": 1.0}, "exhaustive"),
    record(4, "z", {}, "none", unfinished="a a a a"),
]


def draw_first(backwards: bool = False, names: Sequence[str] = NAMES) -> dict[str, Any]:
    """Return the drawing of the first record, with attention to its two source tokens.

    Args:
        backwards: whether the model writes the last token first.
        names: names of the table's tokens.
    """
    lattice = build_lattice(TableStepper(7), [DRAW], [(W, E, D), (W, N)])
    content: dict[str, Any] = drawing(lattice, ["+PST", "d"], names, eos=EOS, backwards=backwards)
    for position, node in enumerate(content["nodes"]):
        # Pairs of a source position and its weight, one after the other.
        node["attention"] = [0, 0.25, 1, 0.75] if position == 1 else [1, 1.0]
    return content


def write(
    folder: Path,
    records: Sequence[Mapping[str, Any]],
    drawings: Iterable[tuple[int, Any]] = (),
    curve: CoverageCurve | None = None,
) -> Path:
    """Write a page into a folder; return its path. `write_page` has the arguments."""
    path = folder / "page.html"
    with open(path, "w", encoding="utf-8") as file:
        write_page(file, TITLE, records, drawings=drawings, curve=curve)
    return path


def shown(browser: Browser) -> list[int]:
    """Return the positions of the sentences that the open page lists; the page counts from 1."""
    positions: list[int] = browser(
        "[...document.querySelectorAll('#rows .row .id')].map(e => parseInt(e.textContent) - 1)"
    )
    return positions


def toggle(browser: Browser, kind: str) -> None:
    """Hide the sentences of a kind, such as a level, or show them again."""
    browser(f"document.querySelector('[data-kind={kind}]').click()")


def write_with_references(
    folder: Path,
    sentences: Sequence[tuple[Mapping[str, Any], str]],
    drawings: Iterable[tuple[int, Any]] = (),
) -> Path:
    """Write a page that judges its outputs and has the curve of coverage; return its path.

    Args:
        folder: the folder to write to.
        sentences: records, each with the reference for its output.
        drawings: see `write_page`.
    """
    records, references = zip(*sentences, strict=True)
    judged = with_references(records, references)
    return write(folder, judged, drawings, coverage_curve(judged, tokenizer=None))
