"""`onmt-entmax score` reads texts of subwords as `translate` writes them."""

from pathlib import Path

import pytest

from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tests.cli.scoring import score_lines, tokens_of, write_model
from tests.models import vocabularies_of

JOINER = "￭"  # marks a letter that is joined to the next one
LETTERS = vocabularies_of(
    ["a", "b", f"a{JOINER}", f"b{JOINER}"], ["x", "y", f"x{JOINER}", f"y{JOINER}"]
)
IN_LETTERS = "{'mode': 'char', 'joiner_annotate': True}"  # options of the tokeniser
SOURCE = "ab ba"


@pytest.mark.usefixtures("pyonmttok")
@pytest.mark.parametrize("order", ["left_to_right", "right_to_left"])
def test_texts_are_scored_as_translate_scored_its_outputs(tmp_path: Path, order: str) -> None:
    """An output that ends in a joiner is left out: its text stands for the one without."""
    model = tmp_path / "model"
    write_model(
        model,
        3,
        LETTERS,
        transforms=["onmt_tokenize"],
        src_onmttok_kwargs=IN_LETTERS,
        tgt_onmttok_kwargs=IN_LETTERS,
        target_order=order,
    )
    task = SearchTask(SearchConfig(n_best=20, beam_size=20, max_length=6))
    (answer,) = Translator.from_folders(model, task).answers([SOURCE])
    outputs = [output for output in answer.hypotheses if output.text and JOINER not in output.text]
    target = [output.text for output in outputs]
    records = score_lines(tmp_path, model, source=[SOURCE] * len(target), target=target)
    compared = 0
    for output, record in zip(outputs, records, strict=True):
        tokens = LETTERS.target.decode(output.hypothesis.tokens)
        if tokens_of(record) == [*tokens, "</s>"]:
            assert record["log_prob"] == pytest.approx(output.hypothesis.log_prob, abs=1e-5)
            compared += 1
    assert compared > 1
