"""What the user is advised when most sentences of a report have the same problem."""

from collections import Counter

import pytest

from onmt_entmax.report.advice import advice_on
from onmt_entmax.report.counts import CertificateCounts

UNFINISHED = "most sentences have no finished output"
EMPTY = "most outputs are empty"
UNCERTIFIED = "nothing is certified"


@pytest.mark.parametrize(
    ("counts", "problems"),
    [
        pytest.param(CertificateCounts(), [], id="no sentences"),
        pytest.param(CertificateCounts(sentences=2, unfinished=1), [], id="half unfinished"),
        pytest.param(
            CertificateCounts(sentences=3, unfinished=2), [UNFINISHED], id="most unfinished"
        ),
        pytest.param(CertificateCounts(sentences=2, empty=1), [], id="half empty"),
        pytest.param(CertificateCounts(sentences=3, empty=2), [EMPTY], id="most empty"),
        pytest.param(
            CertificateCounts(sentences=2, levels=Counter(none=1, optimal=1)),
            [],
            id="one certificate",
        ),
        pytest.param(
            CertificateCounts(sentences=2, levels=Counter(none=2)),
            [UNCERTIFIED],
            id="no certificate",
        ),
        pytest.param(
            CertificateCounts(sentences=3, empty=2, levels=Counter(none=3)),
            [EMPTY, UNCERTIFIED],
            id="empty outputs without certificates",
        ),
        pytest.param(
            CertificateCounts(sentences=3, unfinished=3, levels=Counter(none=3)),
            [UNFINISHED],
            id="no certificates because nothing finished",
        ),
    ],
)
def test_advice_is_on_problems_of_most_sentences(
    counts: CertificateCounts, problems: list[str]
) -> None:
    assert [*advice_on(counts)] == problems
