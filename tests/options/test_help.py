"""The help of `train` and `translate`: its options, their order and its length."""

import re

import pytest

from onmt_entmax.cli.train import main as train
from onmt_entmax.cli.translate import main as translate
from onmt_entmax.opennmt import ArgumentParser, train_opts, translate_opts
from onmt_entmax.options.help import TRAINING, TRANSLATION, Help, help_text
from onmt_entmax.options.reader import canonical, register
from onmt_entmax.options.support import REFUSED_IN_TRAINING, REFUSED_IN_TRANSLATION
from onmt_entmax.options.train import training_parser
from onmt_entmax.options.translate import translation_parser

CASES = {
    "train": (training_parser(), TRAINING, {*REFUSED_IN_TRAINING}),
    "translate": (translation_parser(), TRANSLATION, {*REFUSED_IN_TRANSLATION}),
}
both = pytest.mark.parametrize(("parser", "texts", "refused"), CASES.values(), ids=CASES)


def listed(text: str) -> list[str]:
    return re.findall(r"^  -(\w+) ", text, re.MULTILINE)


def opennmts(command: str) -> set[str]:
    parser = ArgumentParser()
    if command == "train":
        train_opts(parser)
    else:
        translate_opts(parser, dynamic=True)
    return set(register(parser))


@both
def test_the_full_help_lists_every_option_that_does_something(
    parser: ArgumentParser, texts: Help, refused: set[str]
) -> None:
    names = listed(help_text(parser, texts, everything=True))
    assert len(names) == len(set(names))
    known = {
        canonical(action)
        for action in register(parser).values()
        if type(action).__name__ != "DeprecateAction"
    }
    assert set(names) == known - set(texts.hidden)
    assert not set(names) & refused
    assert set(texts.others) <= known


@both
def test_no_markup_and_no_statement_of_opennmt_that_is_wrong_here(
    parser: ArgumentParser, texts: Help, refused: set[str]
) -> None:
    text = help_text(parser, texts, everything=True)
    for wrong in (":cite:", ":math:", "``", "dict_keys", ".pt", "If verbose", "epsilon", "ggnn"):
        assert wrong not in text
    assert max(map(len, text.splitlines())) <= 98


@pytest.mark.parametrize("command", ["train", "translate"])
def test_ours_come_first_in_the_short_help(command: str) -> None:
    parser, texts, _ = CASES[command]
    short = help_text(parser, texts, everything=False)
    assert len(short.splitlines()) <= 80
    before, after = short.split("OpenNMT-py's options from here on")
    ours = {canonical(a) for a in register(parser).values()} - opennmts(command) - {"config"}
    (*_, group) = parser._action_groups
    if command == "train":  # too many for the short help, which names the topic
        assert group.title == "Attention of a Transformer"
        assert "a Transformer's attention" in short
        ours -= {canonical(action) for action in group._group_actions}
    assert ours - set(texts.hidden) <= set(listed(before))
    assert not ours & set(listed(after))


def test_an_option_may_name_its_topic_where_it_is_added() -> None:
    parser = training_parser()
    text = "Limits and speed: Something new."
    parser.add_argument("-fresh", type=int, default=3, help=text)
    for everything in (False, True):
        shown = help_text(parser, TRAINING, everything)
        topic = shown.split("Limits and speed:\n")[1].split("\n\n")[0]
        assert re.search("^  -fresh +Something new. \\(3\\)$", topic, re.MULTILINE)
        assert shown.count("-fresh") == 1


@pytest.mark.parametrize(("main", "command"), [(train, "train"), (translate, "translate")])
def test_both_lengths_are_printed(
    main, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [f"onmt-entmax {command}"])
    lengths = []
    for flag in ("-h", "--help", "--help-all"):
        assert main(["-config", "x.yaml", flag]) == 0
        text = capsys.readouterr().out
        assert text.startswith(f"usage: onmt-entmax {command} ")
        lengths.append(len(text.splitlines()))
    assert lengths[0] == lengths[1] < lengths[2]
