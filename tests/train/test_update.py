"""Updates with padded batches and without; on a CPU plain calls stand in for CUDA graphs."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from onmt_entmax.config import ModelConfig, OptimizerConfig, TrainingConfig
from onmt_entmax.data.batch import Batch, Example, make_batch
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.errors import UserError
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.nn.transformer import attentions
from onmt_entmax.sparse import backends
from onmt_entmax.train import graphs as graphs_module
from onmt_entmax.train import padded as padded_module
from onmt_entmax.train.optimiser import build_optimizer
from onmt_entmax.train.padded import reason_against
from onmt_entmax.train.reports import Report, Reports
from onmt_entmax.train.update import Update
from tests.models import small, small_transformer

WORDS = Vocabulary((*map(str, TARGET_SPECIALS), *(f"t{n}" for n in range(16))))
KNOWN = Vocabularies(WORDS, WORDS)
PADS = WORDS.pad, WORDS.pad
CONFIG = small(encoder_type="brnn", global_attention_alpha=1.5, generator_alpha=1.5, param_init=0.4)
TRANSFORMER = small_transformer(
    attention_dropout=0.0,
    encoder_attention_alpha="learned",
    context_attention_alpha=1.5,
    generator_alpha=1.5,
    param_init=0.4,
)


def model_of(dropout: float = 0.0, config: ModelConfig = CONFIG) -> SparseNMTModel:
    torch.manual_seed(1)
    return build_model(replace(config, dropout=dropout), KNOWN).double().train()


def batch_of(seed: int, longest: int = 7, sentences: int = 5) -> Batch:
    generator = random.Random(seed)

    def tokens() -> list[int]:
        return [generator.randrange(4, 20) for _ in range(generator.randint(1, longest))]

    return make_batch([Example(tokens(), tokens(), n) for n in range(sentences)], KNOWN)


def update_of(
    model: SparseNMTModel, graphs: str = "on", norm: float = 5.0, optim: str = "adam"
) -> Update:
    optimizer = OptimizerConfig(optim, 1.0, max_grad_norm=norm)
    config = TrainingConfig(optimizer, cuda_graphs=graphs)
    shapes = None if graphs == "packed" else Shapes(5)
    return Update(model, build_optimizer(model, optimizer), config, PADS, shapes)


@pytest.mark.parametrize(
    ("config", "optim"), [(CONFIG, "adam"), (TRANSFORMER, "sgd")], ids=["recurrent", "transformer"]
)
@pytest.mark.parametrize("graphs", ["on", "off", "check", "packed"])
def test_updates_are_those_of_autograd(graphs: str, config: ModelConfig, optim: str) -> None:
    """Of several batches, with clipping and a rate for each update."""
    ours, theirs = model_of(config=config), model_of(config=config)
    update = update_of(ours, graphs, norm=0.1, optim=optim)
    weights = theirs.parameters()
    optimizer: torch.optim.Optimizer = torch.optim.SGD(weights, 1.0)
    if optim == "adam":
        optimizer = torch.optim.Adam(theirs.parameters(), 1.0, eps=1e-9)  # as in OpenNMT-py
    for step in range(6):
        rate = 0.01 / (step + 1)
        optimizer.param_groups[0]["lr"] = rate
        batches = [batch_of(step + 9 * n, longest=3 if step % 2 else 7) for n in range(2)]
        optimizer.zero_grad()
        sums = torch.zeros(4, dtype=torch.float64)
        for batch in batches:
            update.add(batch, 10)
            result = theirs.generator.loss(*theirs.hidden_states(batch), PADS[1])
            (result.loss / 10).backward()
            sums += torch.stack([value.detach().double() for value in result])
        norm = torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.1)
        optimizer.step()
        update.report_signal(15)
        update.report_seconds(2.5)
        report = update.step((rate, rate))
        expected = torch.cat([sums, torch.tensor([15.0, 2.5]), norm.detach().view(1)])
        torch.testing.assert_close(report, expected, rtol=1e-8, atol=0)
        assert not any(p.grad is not None and p.grad.any() for p in ours.parameters())
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert float((mine - other).detach().abs().max()) <= 1e-8
    assert (update.recorder.captured > 0) == (graphs in ("on", "check"))


def test_processes_add_their_gradients() -> None:
    """Two halves of an update in two processes, whose gradients and measurements are summed."""
    shares, whole = [update_of(model_of()) for _ in range(2)], update_of(model_of())
    for seed, share in enumerate(shares):
        share.add(batch_of(seed), 10)
        whole.add(batch_of(seed), 10)
    sums = [
        sum(share.measured for share in shares),
        *(sum(p.grad for p in each) for each in zip(*(s.parameters for s in shares), strict=True)),
    ]
    expected = whole.step((0.01,)).clone()
    for share in shares:
        for place, total in zip(
            [share.measured, *(p.grad for p in share.parameters)], sums, strict=True
        ):
            place.copy_(total)
        torch.testing.assert_close(share.step((0.01,)), expected)


@pytest.mark.parametrize("graphs", ["on", "packed"])
def test_what_is_not_finite_changes_no_weight(graphs: str) -> None:
    model = model_of()
    update = update_of(model, graphs)
    loss = update.loss
    wrong = {3: lambda value: value * torch.nan, 4: lambda value: value + torch.inf}
    for step in range(5):
        if step in wrong:  # of the infinite loss, the gradient is finite
            update.loss = lambda batch: loss(batch)._replace(loss=wrong[step](loss(batch).loss))  # noqa: B023
        update.add(batch_of(0), 5)
        before = [p.detach().clone() for p in model.parameters()]
        finite = bool(update.step((0.01,)).isfinite().all())
        changed = any(not a.equal(b) for a, b in zip(before, model.parameters(), strict=True))
        assert changed == finite == bool(update.finite) == (step < 3)
    update.loss = loss
    update.add(batch_of(0), 5)
    assert update.step((0.01,)).isfinite().all()  # nothing of it stays


def test_no_update_keeps_its_graph() -> None:
    model = model_of()
    update_of(model).add(batch_of(1), 5)
    nodes = [p.view_as(p).grad_fn.next_functions[0][0].metadata for p in model.parameters()]
    for metadata in nodes:
        metadata["kept"] = True
    del metadata, nodes
    assert not any(p.view_as(p).grad_fn.next_functions[0][0].metadata for p in model.parameters())


def test_there_is_a_largest_number_of_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs_module, "MOST_GRAPHS", 2)
    update = update_of(model_of())
    for longest in (3, 3, 7, 7, 7, 12, 12, 3):
        update.add(batch_of(longest, longest), 5)
        update.step((0.01,))
    assert update.recorder.captured == 2


def test_check_finds_a_graph_on_stale_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of()
    model.encoder.fixed_shapes = model.decoder.fixed_shapes = True  # as on a GPU
    update = update_of(model, "check")
    update.add(batch_of(0), 5)
    update.step((0.01,))

    def stale(function: Callable[[], object]) -> Callable[[], object]:
        (ids,) = update._inputs.values()
        kept = ids.clone()

        def replay() -> None:
            ids.copy_(kept.roll(1))
            function()
            ids.copy_(kept)

        return replay

    monkeypatch.setattr(update.recorder, "_capture", stale)
    with pytest.raises(UserError, match="differs from a plain update"):
        update.add(batch_of(0), 5)


def test_dropout_is_the_same_with_graphs_and_without() -> None:
    reports: list[Tensor] = []
    for graphs in ("on", "off", "check"):
        update = update_of(model_of(dropout=0.3), graphs)
        torch.manual_seed(5)
        for step in range(4):
            update.add(batch_of(step % 2), 5)
            report = update.step((0.01,))
        reports.append(report)
    assert reports[0].equal(reports[1])
    assert reports[0].equal(reports[2])


def test_alphas_and_dropout_have_graphs_of_their_own() -> None:
    model = model_of(0.1, TRANSFORMER)
    update = update_of(model)

    def change_alpha() -> None:
        attentions(model)["context"][1].alpha = 1.4

    def change_output() -> None:
        model.generator.alpha = 1.4

    for change in (
        lambda: None,
        lambda: model.update_dropout(0.2, 0.0),
        change_alpha,
        change_output,
    ):
        for _ in range(2):
            update.step((0.01,))  # which has a graph, too
        before = update.recorder.captured
        change()
        for _ in range(2):
            update.add(batch_of(0), 5)
            update.step((0.01,))
        assert update.recorder.captured == before + 1


def test_settings_that_change_in_each_update_have_no_graphs() -> None:
    """As while attention warms up; graphs are few, and these would never serve again."""
    model = model_of(0.1, TRANSFORMER)
    update = update_of(model)
    for _ in range(2):
        update.step((0.01,))
    before = update.recorder.captured
    for number in range(3):
        attentions(model)["context"][1].alpha = 1.2 + number / 10
        for _ in range(2):  # of one shape, as with accum_count 2
            update.add(batch_of(0), 5)
        update.step((0.01,))
    assert update.recorder.captured == before


def test_kernels_that_do_not_start_are_a_reason_against(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's operations in their place wait for the GPU, which cannot be recorded."""
    assert reason_against(model_of()) is None
    monkeypatch.setattr(padded_module, "device_of", lambda model: torch.device("cuda"))
    monkeypatch.setattr(backends, "of", lambda *_: backends.reference)
    assert reason_against(model_of()) == "Triton starts no kernels here"


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (TRANSFORMER, None),
        (replace(CONFIG, dec_layers=2, enc_layers=2), None),
        (replace(CONFIG, rnn_type="GRU"), "the encoder is not an LSTM"),
        (replace(CONFIG, position_encoding=True), "the encoder is not an LSTM"),
        (replace(CONFIG, encoder_type="mean"), "the encoder is not an LSTM"),
        (replace(CONFIG, context_gate="both"), "the decoder is not an input-feeding LSTM"),
        (replace(CONFIG, input_feed=False), "the decoder is not an input-feeding LSTM"),
        (replace(CONFIG, global_attention="none"), "the decoder is not an input-feeding LSTM"),
    ],
)
def test_the_part_that_cannot_be_padded_is_the_reason(
    config: ModelConfig, reason: str | None
) -> None:
    found = reason_against(model_of(config=config))
    assert found is None if reason is None else str(found).startswith(reason)


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_reports_arrive_in_order_and_in_time(delay: int) -> None:
    reports = Reports(torch.device("cpu"))
    assert reports.delay == 0
    reports.delay = delay
    values = torch.zeros(7)
    expected = [(step, Report(*[step] * 7)) for step in range(7)]
    read = []
    for step in range(7):
        reports.send(step, values.fill_(step))  # the same memory each time
        read += reports.read()
        assert read == expected[: max(0, step + 1 - delay)]
    read += reports.read(everything=True)
    assert read == expected
    assert not list(reports.read(everything=True))
