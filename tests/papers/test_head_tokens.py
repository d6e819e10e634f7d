"""The words that subwords make up, of which attention heads are measured."""

import pytest

from tools.papers import head_tokens


@pytest.mark.parametrize(
    ("tokens", "clusters"),
    [
        # Each token has the position of the first one of its cluster.
        pytest.param(
            "ein Fuß￭ ball￭ er ￭, rot￭ ￭-￭ weiß ￭.", [0, 1, 1, 1, 4, 5, 5, 5, 8], id="joiners"
        ),
        pytest.param("▁ein ▁Fuß ball er . ▁ja", [0, 1, 1, 1, 4, 5], id="spacers"),
        pytest.param("a fo@@ x @-@ y .", [0, 1, 1, 1, 1, 5], id="continuation marks"),
        pytest.param("a - b", [0, 1, 2], id="a dash between words"),
        pytest.param("name ￭@￭ host", [0, 1, 2], id="a mark that is no hyphen"),
    ],
)
def test_clusters_are_words_of_subwords_with_their_hyphens(
    tokens: str, clusters: list[int]
) -> None:
    """A mark joins a token to its neighbour, unless one of both is punctuation other than a hyphen.

    "￭" joins at the side where it stands, "@@" to the next token. Where any token begins with "▁",
    those without it go on a word. "@-@" is a hyphen that joins on both sides.
    """
    assert head_tokens.clusters(tokens.split()) == clusters
