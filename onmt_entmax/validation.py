"""Measuring a model on the development set while it trains."""

from __future__ import annotations

import random
from collections.abc import Sequence

from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.options.train import TrainingSetup
from onmt_entmax.search import ModelStepper, SearchConfig, beam_search
from onmt_entmax.text.batch import Batch, group_by_length, make_batch
from onmt_entmax.text.corpus import validation_batches, validation_examples
from onmt_entmax.text.vocabulary import Vocabularies
from onmt_entmax.training import Evaluate


def make_evaluate(setup: TrainingSetup, vocabularies: Vocabularies) -> Evaluate:
    """What training calls to measure a model on the development set.

    It gives `loss` (a target token, without label smoothing), `token_accuracy` (percent),
    `support` (mean nonzero outputs a token), and, where it is selected by or a decoding size is
    given, `exact_match`: the percentage of sampled sentences that are decoded exactly.
    """
    batches = validation_batches(setup.data, vocabularies)
    decoded: list[Batch] = []
    if setup.training.selection == "exact_match":
        examples = validation_examples(setup.data, vocabularies)
        if 0 < setup.run.valid_decode_size < len(examples):
            examples = random.Random(0).sample(examples, setup.run.valid_decode_size)
        groups = group_by_length(examples, setup.data.valid_batch_size, "sents")
        decoded = [make_batch(group, vocabularies) for group in groups]
    search = SearchConfig(
        beam_size=setup.run.valid_beam_size, max_length=setup.run.max_length, stop="first"
    )

    def evaluate(model: SparseNMTModel) -> dict[str, float]:
        values = _teacher_forced(model, batches, vocabularies.target.pad)
        if decoded:
            values["exact_match"] = _exact_match(model, decoded, vocabularies, search)
        return values

    return evaluate


def _teacher_forced(model: SparseNMTModel, batches: Sequence[Batch], pad: int) -> dict[str, float]:
    loss = tokens = correct = support = 0.0
    for batch in batches:
        hidden, target = model.hidden_states(batch.to(device_of(model)))
        result = model.generator.loss(hidden, target, pad)
        loss += float(result.loss)
        tokens += float(result.tokens)
        correct += float(result.correct)
        support += float(result.support)
    tokens = max(tokens, 1.0)
    return {
        "loss": loss / tokens,
        "token_accuracy": 100 * correct / tokens,
        "support": support / tokens,
    }


def _exact_match(
    model: SparseNMTModel,
    batches: Sequence[Batch],
    vocabularies: Vocabularies,
    search: SearchConfig,
) -> float:
    stepper = ModelStepper(model, vocabularies.target)
    right = total = 0
    for batch in batches:
        assert batch.target is not None
        assert batch.target_lengths is not None
        rows, lengths = batch.target[:, :, 0].t().tolist(), batch.target_lengths.tolist()
        for result, row, length in zip(
            beam_search(stepper, batch, search), rows, lengths, strict=True
        ):
            reference = tuple(row[1 : length - 1])
            best = result.hypotheses[0].tokens if result.hypotheses else None
            # An unknown token stands for many strings, so it never matches.
            right += best == reference and vocabularies.target.unk not in reference
            total += 1
    return 100 * right / max(total, 1)
