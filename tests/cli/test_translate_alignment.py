"""`translate -report_align`: alignments, in a file beside the outputs and in the report."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.translating import Translated, UnsureLine, translate

N_BEST = 2  # outputs of each line, one below the other


class Link(NamedTuple):
    """A pair of positions, and the attention of the target token to the source token."""

    source: int
    target: int
    weight: float


def best_links(translated: Translated) -> list[Link]:
    """Return the links of the first line's best hypothesis, from the report."""
    return [Link(*link) for link in translated.best[0]["alignment"]["links"]]


@pytest.fixture(scope="module")
def aligned(
    toy_run: Path, unsure_lines: list[UnsureLine], tmp_path_factory: pytest.TempPathFactory
) -> Translated:
    """A line with several outputs, a blank one and one of a sure output, with their alignments."""
    options = ["-n_best", N_BEST, "-beam_size", 4, "-report_align"]
    text = f"{unsure_lines[0].source}\n\nd e\n"
    return translate(toy_run, tmp_path_factory.mktemp("aligned"), text, *options)


@pytest.fixture(scope="module")
def alignments(aligned: Translated) -> list[str]:
    """The lines of the file beside the outputs."""
    return (aligned.folder / "out.align").read_text().splitlines()


def test_each_token_of_an_output_has_a_link(alignments: list[str], aligned: Translated) -> None:
    assert any(aligned.lines)
    for line, text in zip(alignments, aligned.lines, strict=True):
        links = [tuple(map(int, pair.split("-"))) for pair in line.split()]
        assert {target for _, target in links} == set(range(len(text.split())))


def test_a_blank_line_has_empty_alignments(alignments: list[str]) -> None:
    first, blank = alignments[:N_BEST], alignments[N_BEST : 2 * N_BEST]
    assert all(first)
    assert not any(blank)


def test_the_report_has_the_alignments_that_were_written(
    alignments: list[str], aligned: Translated
) -> None:
    links = sorted(best_links(aligned))
    assert alignments[0] == " ".join(f"{source}-{target}" for source, target, _ in links)


def test_weights_of_a_target_token_sum_to_1(aligned: Translated) -> None:
    sums: Counter[int] = Counter()
    for _, target, weight in best_links(aligned):
        assert weight > 0
        sums[target] += weight
    assert list(sums.values()) == pytest.approx([1.0] * len(sums), abs=1e-5)
