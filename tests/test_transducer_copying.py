"""`Transducer` with a model that copies rare symbols, by placeholders in its vocabularies.

A source symbol that the source vocabulary lacks is *copied*: the network reads a placeholder,
`<copy1>` for the first such symbol, and a placeholder that it writes stands for that symbol.
"""

import itertools
import math
from collections.abc import Mapping
from pathlib import Path

import pytest

from onmt_entmax import Transducer, load, train_model
from onmt_entmax.data.batch import make_batch
from onmt_entmax.data.vocabulary import Vocabulary
from onmt_entmax.ensembles import make_stepper
from onmt_entmax.search import SearchConfig, SearchTask, score_targets
from onmt_entmax.strings.copying import PLACEHOLDERS
from onmt_entmax.translator import Translator
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.string_models import UNKNOWN, task_options

KNOWN = "ab"  # source letters that are not copied
COPIES = PLACEHOLDERS[:3]
SOURCES = ["ab", "axb", "xyx", "xyzw"]  # the last has more rare symbols than there are placeholders
LONGEST = 2  # tokens of an output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model; its target vocabulary has `x`, the source vocabulary has not."""
    vocabularies = vocabularies_of((*KNOWN, *COPIES), (*KNOWN, "x", *COPIES))
    folder = tmp_path_factory.mktemp("copies") / "model"
    return write_model(folder, 11, vocabularies, end=0, options=task_options(copy_frequency=2))


def listing_all_outputs(folder: Path) -> Transducer:
    """Return a transducer that lists all outputs of up to two tokens."""
    return Transducer(folder, n_best=0, beam_size=500, max_length=LONGEST)


# --- outputs against enumeration -------------------------------------------------------------


def copied_symbols(source: str) -> dict[str, str]:
    """Return the symbol of a source that each placeholder stands for."""
    rare = [symbol for symbol in dict.fromkeys(source) if symbol not in KNOWN]
    return dict(zip(COPIES, rare, strict=False))


def allowed_tokens(target: Vocabulary, copied: Mapping[str, str]) -> list[str]:
    """Return the tokens that an output may have.

    A copied symbol is written by its placeholder alone; other placeholders stand for nothing.
    """
    return [
        token
        for token in target.tokens
        if target.can_write(token)
        and token not in copied.values()
        and (token in copied or token not in PLACEHOLDERS)
    ]


def expected_texts(folder: Path, source: str) -> dict[str, float]:
    """Return the log-probability of each text, from the scores of all allowed outputs."""
    model, copied = load(folder), copied_symbols(source)
    target = model.vocabularies.target
    tokens = allowed_tokens(target, copied)
    outputs = [
        output
        for length in range(LONGEST + 1)
        for output in itertools.product(tokens, repeat=length)
    ]
    reader = Translator([model], SearchTask(SearchConfig(beam_size=1))).reader
    example = reader.encode(list(source)).example
    scores = score_targets(
        make_stepper([model], attention=False, temperature=1.0),
        make_batch([example] * len(outputs), model.vocabularies),
        [target.encode(output) for output in outputs],
    )
    texts = [
        "".join(copied.get(token, token) for token in output).replace("<unk>", UNKNOWN)
        for output in outputs
    ]
    return {
        text: score.log_prob
        for text, score in zip(texts, scores, strict=True)
        if score.log_prob > -math.inf
    }


@pytest.mark.parametrize("source", SOURCES)
def test_texts_are_those_of_all_allowed_outputs(folder: Path, source: str) -> None:
    """Exactly one output writes each text, which has the probability of that output."""
    prediction = listing_all_outputs(folder).predict(source)
    assert prediction.certificate.dropped == 0
    log_probs = {output.text: output.log_prob for output in prediction.outputs}
    assert len(prediction.outputs) == len(log_probs) > 3
    assert log_probs == pytest.approx(expected_texts(folder, source), abs=1e-5)


@pytest.mark.parametrize("source", SOURCES)
def test_texts_are_scored_as_they_are_predicted(folder: Path, source: str) -> None:
    transducer = listing_all_outputs(folder)
    outputs = transducer.predict(source).outputs
    log_probs = {output.text: output.log_prob for output in outputs if UNKNOWN not in output.text}
    assert log_probs
    scores = {text: transducer.score(source, text) for text in log_probs}
    assert scores == pytest.approx(log_probs, abs=1e-5)


# --- single symbols --------------------------------------------------------------------------


def test_the_warning_of_a_copied_symbol_does_not_call_it_unknown(folder: Path) -> None:
    message = "a placeholder stands for the character 彁, which training had rarely or never"
    assert Transducer(folder).predict("a彁").warnings == (message,)


def test_a_source_without_copied_symbols_gives_no_warning(folder: Path) -> None:
    assert not Transducer(folder).predict("ab").warnings


def test_a_copied_symbol_has_the_probability_of_its_placeholder(folder: Path) -> None:
    """The target vocabulary has a token for x, which does not count, and none for w."""
    transducer = Transducer(folder)
    assert transducer.score("ax", "x") == pytest.approx(transducer.score("aw", "w"), abs=1e-6)


def test_the_name_of_a_placeholder_is_no_possible_text(folder: Path) -> None:
    assert Transducer(folder).score("a", "<copy1>") == -math.inf


def test_a_placeholder_that_the_source_lacks_is_not_an_output(tmp_path: Path) -> None:
    vocabularies = vocabularies_of(("a", *PLACEHOLDERS[:2]), ("a", *PLACEHOLDERS[:2]))
    options = task_options(separators={"source": " ", "target": " "}, copy_frequency=2)
    transducer = Transducer(
        write_model(tmp_path / "model", 8, vocabularies, end=1, options=options)
    )
    assert transducer.score("a x", "x") > -math.inf
    assert transducer.score("a x", "<copy2>") == -math.inf


# --- a trained model -------------------------------------------------------------------------


def write_pairs_to_reverse(folder: Path) -> Path:
    """Write 60 pairs of two letters each, which no other pair has; return a training's YAML file.

    The target is the source in reverse. All letters are rare, so that the network learns to copy.
    """
    letters = [chr(0x4E00 + number) for number in range(120)]
    pairs = [letters[first : first + 2] for first in range(0, 120, 2)]
    for name in ("train", "dev"):
        for side, step in (("src", 1), ("tgt", -1)):
            lines = (" ".join(pair[::step]) + "\n" for pair in pairs)
            (folder / f"{name}.{side}").write_text("".join(lines), encoding="utf-8")
    corpus = "{{path_src: {0}/{1}.src, path_tgt: {0}/{1}.tgt}}".format
    (folder / "train.yaml").write_text(
        f"data:\n  train: {corpus(folder, 'train')}\n  valid: {corpus(folder, 'dev')}\n"
        f"save_model: {folder / 'model'}\ntask: {{columns: [source, target]}}\n"
        "copy_frequency: 5\nrnn_size: 16\nword_vec_size: 16\nlayers: 1\noptim: adam\n"
        "learning_rate: 0.02\ndropout: [0.0]\ngenerator_function: entmax15\nbatch_size: 20\n",
        encoding="utf-8",
    )
    return folder / "train.yaml"


def test_a_trained_model_copies_symbols_that_training_never_saw(tmp_path: Path) -> None:
    steps = 60
    folder = train_model(
        write_pairs_to_reverse(tmp_path),
        train_steps=steps,
        valid_steps=steps,
        save_checkpoint_steps=steps,
    )
    transducer = Transducer(folder)
    assert transducer.task.copies
    prediction = transducer.predict("彁é")
    assert prediction.text == "é彁"
    score = transducer.score("彁é", "é彁")
    assert score == pytest.approx(prediction.outputs[0].log_prob, abs=1e-5)
