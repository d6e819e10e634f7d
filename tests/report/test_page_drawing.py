"""The data of a sentence's pictures: tokens, branches and attention of its lattice."""

from onmt_entmax.report.lattice import build_lattice
from onmt_entmax.report.page_drawing import drawing
from tests.report.pages import NAMES
from tests.search.table_steppers import TableStepper
from tests.search.tables import DRAW, EOS, D, E, N, W


def test_a_drawing_names_tokens_and_says_where_branches_lead() -> None:
    """A branch is (token, probability, node), or (None, probability, hypothesis) at an end."""
    lattice = build_lattice(TableStepper(len(NAMES)), [DRAW], [(W, N), (W,)])
    content = drawing(lattice, ["a"], NAMES, eos=EOS, backwards=False)
    assert content["source"] == ["a"]
    _, second, third = content["nodes"]
    assert second["branches"] == [["e", 0.6], ["n", 0.32, 2], [None, 0.08, 1]]
    assert third == {"branches": [[None, 1.0, 0]]}


def test_a_drawing_has_attention_and_the_sum_of_unlisted_branches() -> None:
    """Unlisted branches have the sum of their probabilities and their number."""
    stepper = TableStepper(len(NAMES), attention=True)
    lattice = build_lattice(stepper, [DRAW], [(W, E, D), (W, N)], limit=1)
    first, second, *_ = drawing(lattice, ["a"], NAMES, eos=EOS, backwards=False)["nodes"]
    assert first == {"branches": [["w", 1.0, 1]], "attention": []}
    assert second == {
        "branches": [["e", 0.6, 3], ["n", 0.32, 2]],
        "others": [0.08, 1],
        "attention": [0, 12.0],
    }
