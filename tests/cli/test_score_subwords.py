"""`onmt-entmax score` reads texts of subwords as `translate` writes them."""

from pathlib import Path

import pytest

from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tests.cli.scoring import score_lines, tokens_of, write_model
from tests.models import vocabularies_of


@pytest.mark.usefixtures("pyonmttok")
@pytest.mark.parametrize("order", ["left_to_right", "right_to_left"])
def test_texts_are_read_as_translate_writes_them(tmp_path: Path, order: str) -> None:
    """Joiners at the end of a text are lost, so such outputs have other tokens."""
    letters = vocabularies_of(["a", "b", "a￭", "b￭"], ["x", "y", "x￭", "y￭"])
    kwargs = "{'mode': 'char', 'joiner_annotate': True}"
    options = {f"{side}_onmttok_kwargs": kwargs for side in ("src", "tgt")}
    options |= {"target_order": order, "transforms": ["onmt_tokenize"]}
    write_model(tmp_path / "model", 3, letters, **options)
    task = SearchTask(SearchConfig(n_best=20, beam_size=20, max_length=6))
    (answer,) = Translator.from_folders(tmp_path / "model", task).answers(["ab ba"])
    outputs = [output for output in answer.hypotheses if output.text and "￭" not in output.text]
    target = [output.text for output in outputs]
    records = score_lines(
        tmp_path, tmp_path / "model", source=["ab ba"] * len(target), target=target
    )
    with_same_tokens = [
        (record["log_prob"], output.hypothesis.log_prob)
        for output, record in zip(outputs, records, strict=True)
        if tokens_of(record) == [*letters.target.decode(output.hypothesis.tokens), "</s>"]
    ]
    assert len(with_same_tokens) > 1
    scores, expected = zip(*with_same_tokens, strict=True)
    assert scores == pytest.approx(expected, abs=1e-5)
