"""`onmt-entmax prepare`: from a corpus to text, subwords and the YAML that goes with them."""

import functools
import gzip
import hashlib
import html
import http.server
import io
import json
import random
import shlex
import tarfile
import threading
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.cli import prepare_mt
from onmt_entmax.cli.main import CORPORA, GROUPS
from onmt_entmax.data import parallel
from onmt_entmax.errors import UserError
from tests.commands import fail, run, succeed
from tests.ended import ended, refused

WORDS = {
    "de": "der Hund läuft über die Straße und bellt , weil er Katzen jagt .".split(),
    "en": "the dog runs across the street and barks , because it hunts cats .".split(),
    "ja": list("犬が通りを走って猫を追いかけるので吠える。"),
    "ro": "câinele aleargă peste stradă şi latră , pentru că vânează pisici .".split(),
}


def sentences(language: str, count: int) -> list[str]:
    """Lines that correspond over languages: as many words as in any other."""
    generator = random.Random(3)
    between = "" if language == "ja" else " "
    return [
        between.join(generator.choices(WORDS[language], k=generator.randint(3, 9)))
        for _ in range(count)
    ]


def write(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def write_corpus(folder: Path, languages: tuple[str, str], train: int = 300, val: int = 20) -> None:
    for language in languages:
        lines = sentences(language, train + val)
        write(folder / f"train.{language}", lines[:train])
        write(folder / f"dev.{language}", lines[train:])


@pytest.fixture
def small(monkeypatch) -> None:
    """The known parallel with the sizes of the files made here."""
    for name, corpus in parallel.CORPORA.items():
        counts = dict.fromkeys(corpus.counts, 20) | {"train": 300}
        made = replace(corpus, counts=counts, symbols=120, sha256={})
        monkeypatch.setitem(parallel.CORPORA, name, made)


def files_of(folder: Path, languages: tuple[str, str]) -> list[object]:
    first, second = languages
    return [
        *["--languages", first, second],
        *["--train", folder / f"train.{first}", folder / f"train.{second}"],
        *["--val", folder / f"dev.{first}", folder / f"dev.{second}"],
    ]


def prepared(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    ("line", "language", "tokens", "expected"),
    [
        ("  a\u00a0b \t c\u200b ", "en", False, "a b c"),
        ("u\u0308ber", "de", False, "über"),
        ("it &apos;s &quot; &amp;amp; &quot;", "en", True, 'it \'s " &amp; "'),
        ("it &apos;s", "en", False, "it &apos;s"),
        ("Ştiinţă Țară şi când în", "ro", False, "Stiinta Tara si cand in"),
        ("Ştiinţă", "en", False, "Ştiinţă"),
        ("（全角）", "ja", False, "（全角）"),
        ("k\x96l\x85m ￭￨▁ ｟５０％｠", "ja", False, "k l m ■│_ ⦅５０％⦆"),
    ],
)
def test_normalise(line: str, language: str, tokens: bool, expected: str) -> None:
    assert parallel.normalise(line, language, tokens) == expected


def test_filtering_leaves_out_what_is_empty_long_or_unlike() -> None:
    pairs = [(name, name) for name in "abcdef"]
    lengths = [(3, 3), (0, 3), (11, 8), (10, 10), (2, 7), (3, 9)]
    kept = parallel.filter_pairs(pairs, lengths, 10, 3.0)
    assert [pair[0] for pair in kept] == ["a", "d", "f"]


def test_a_held_out_set_shares_no_sentence_with_training() -> None:
    pairs = [(f"s{n % 40}", f"t{n % 30}") for n in range(200)] + [("", "t1")]
    parts = parallel.hold_out(pairs, 5, seed=1)
    assert len(parts["val"]) == len(set(parts["val"])) == 5
    for side in range(2):
        sentences = [{pair[side] for pair in parts[part]} for part in parallel.PARTS]
        assert not sentences[0] & sentences[1]
    assert parts == parallel.hold_out(pairs, 5, seed=1)
    assert parts["val"] != parallel.hold_out(pairs, 5, seed=2)["val"]
    with pytest.raises(UserError, match=r"cannot hold out 500 .* lower --val_size"):
        parallel.hold_out(pairs, 500, seed=1)


@functools.cache
def learned(kind: str, tokens: bool, folder: Path):
    plan = parallel.SubwordPlan(kind, 120, True, tokens)
    lines = sentences("ja" if kind == "sentencepiece" else "de", 300)
    return parallel.learn(plan, [lines], folder / f"{kind}-{tokens}.model")


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize(
    ("kind", "tokens"), [("bpe", True), ("bpe", False), ("sentencepiece", False)]
)
@given(line=st.text(alphabet="aäzAZ09 .,!?'\"()-%&犬走吠。、％：＃￭￨▁｟", max_size=40))
def test_what_is_divided_is_put_together_again(
    kind: str, tokens: bool, line: str, models: Path
) -> None:
    tokeniser = learned(kind, tokens, models)
    text = parallel.normalise(line, "de", tokens)
    pieces = tokeniser(text)
    assert tokeniser.detokenize(pieces) == text
    assert not any(" " in piece for piece in pieces)


def test_a_failure_leaves_what_was_prepared(tmp_path: Path) -> None:
    write_corpus(tmp_path, ("ro", "en"))
    command = ["files", *map(str, files_of(tmp_path, ("ro", "en"))), "--symbols", "60"]
    command += ["--out", str(tmp_path / "data")]
    assert ended(prepare_mt.main, command) == 0
    before = prepared(tmp_path / "data")
    command[command.index("60")] = "50"  # another model would be learned
    command += ["--max_tokens", "1"]
    assert "no training pair is left" in refused(prepare_mt.main, command, progress=True)
    assert prepared(tmp_path / "data") == before


def test_files_to_a_model_that_reads_and_writes_text(tmp_path: Path) -> None:
    """The commands that are printed train, and translations come back as text."""
    write_corpus(tmp_path, ("ro", "en"))
    command = ["files", *files_of(tmp_path, ("ro", "en")), "--symbols", 60]
    command += ["--subwords", "separate"]
    done = succeed("onmt_entmax", "prepare", *command, "--out", "data", cwd=tmp_path)
    assert "data: 300 pairs to train on, 20 to validate on, 0 to test on; left out: 0 " in done
    again = succeed("onmt_entmax", "prepare", *command, "--out", "again", cwd=tmp_path)
    first, second = prepared(tmp_path / "data"), prepared(tmp_path / "again")
    assert first.keys() == second.keys()
    for name in first.keys() - {"prepare.json"}:
        pair = first[name], second[name].replace(b"again", b"data")
        if name == "train.yaml":
            pair = [text.rpartition(b"# Checksum")[0] for text in pair]
        assert pair[0] == pair[1], name
    assert again.replace("again", "data") == done
    names = {"bpe.ro.model", "bpe.en.model", "prepare.json", "train.yaml"}
    assert set(first) == names | {f"{p}.{name}" for p in ("train", "val") for name in ("ro", "en")}
    assert not set("âăşîţ") & set(first["train.ro"].decode())
    lines = done[: done.index("learning")].splitlines()  # the standard output comes first
    train, translate, bleu = (shlex.split(line)[1:] for line in lines[1:])
    small = ["-rnn_size", 16, "-word_vec_size", 16, "-train_steps", 4, "-warmup_steps", 2]
    small += ["-valid_steps", 2, "-save_checkpoint_steps", 4]
    assert train == ["train", "-config", "data/train.yaml"]
    assert "  BLEU " in succeed("train.py", *train[1:], *small, cwd=tmp_path)
    succeed("translate.py", *translate[1:], "-stop", "first", "-beam_size", 2, cwd=tmp_path)
    assert "BLEU 13a" in succeed("onmt_entmax", "bleu", *bleu[1:], cwd=tmp_path)
    translations = (tmp_path / "data" / "val.out").read_text(encoding="utf-8")
    assert translations.count("\n") == 20
    assert "￭" not in translations


def test_a_path_may_be_what_yaml_means_otherwise() -> None:
    models = [Path("my: corpus #1/bpe.ü.model"), Path("true")]
    plan = parallel.SubwordPlan("bpe", 60, False, False)
    settings = yaml.safe_load(prepare_mt.yaml_lines(plan, models))
    assert [settings[f"{side}_subword_model"] for side in ("src", "tgt")] == list(map(str, models))


def with_markup(name: str, lines: list[str]) -> list[str]:
    """Lines of a file as its makers publish it."""
    if name.endswith((".sgm", ".xml")):
        segments = [f'<seg id="{n}"> {html.escape(line)} </seg>' for n, line in enumerate(lines, 1)]
        return ['<doc docid="1">', "<title>a talk</title>", *segments, "</doc>"]
    if name.startswith("train.tags."):
        return ["<url>http://x</url>", "<description>a talk</description>", *lines]
    return lines


@pytest.mark.parametrize("name", list(parallel.CORPORA))
def test_a_known_corpus_from_a_local_folder(name: str, small, tmp_path: Path, capsys) -> None:
    corpus = parallel.CORPORA[name]
    if name == "kftt":  # the pairs of the task are kept, however long they are
        assert (corpus.max_tokens, corpus.max_ratio) == (10_000, 10_000)
    for language in corpus.languages:
        lines = [f"{line} & <{n}>" for n, line in enumerate(sentences(language, 340))]
        for part, start, end in (("train", 0, 300), ("val", 300, 320), ("test", 320, 340)):
            files = corpus.local.get(part, ())
            for number, file in enumerate(files):
                size = (end - start) // len(files)
                first = start + number * size
                last = end if number == len(files) - 1 else first + size
                named = file.format(language).replace("*", "x")
                write(tmp_path / name / named, with_markup(named, lines[first:last]))
    out = tmp_path / "out"
    arguments = [name, "--from", str(tmp_path / name), "--out", str(out)]
    assert ended(prepare_mt.main, arguments) == 0, capsys.readouterr().err
    record = json.loads((out / "prepare.json").read_text())
    expected = {"read": 300, "shared_with_val": 0, "unfit": 0, "train": 300, "val": 20, "test": 20}
    if "test" not in corpus.counts:
        del expected["test"]
    assert record["pairs"] == expected
    settings = yaml.safe_load((out / "train.yaml").read_text())
    assert settings["src_subword_type"] == ("sentencepiece" if name == "kftt-raw" else "bpe")
    named = [path for entry in settings["data"].values() for path in entry.values()]
    assert not any("test" in Path(path).name for path in named)
    for language in corpus.languages:
        lines = [f"{line} & <{n}>" for n, line in enumerate(sentences(language, 340))]
        expected = [parallel.normalise(line, language, corpus.tokens) for line in lines]
        texts = [out / f"train.{language}", out / f"val.{language}"]
        texts += [out / "test" / f"test.{language}"] if "test" in corpus.counts else []
        found = [line for path in texts for line in path.read_text(encoding="utf-8").splitlines()]
        assert found == expected[: len(found)]
        assert len(found) == (340 if "test" in corpus.counts else 320)


def test_a_local_copy_may_lack_the_test_set(small, tmp_path: Path, capsys) -> None:
    for language in ("en", "ja"):
        lines = sentences(language, 320)
        write(tmp_path / f"train.{language}", lines[:300])
        write(tmp_path / f"dev.{language}", lines[300:])
    arguments = ["tanaka", "--from", str(tmp_path), "--out", str(tmp_path / "out")]
    assert ended(prepare_mt.main, arguments) == 0
    assert f"{tmp_path}: no test set (test.en)" in capsys.readouterr().err
    write(tmp_path / "out" / "test" / "test.ja", ["of other data"])
    before = prepared(tmp_path / "out")
    assert f"{tmp_path}/out/test/test.ja: is of other data" in refused(
        prepare_mt.main, [*arguments, "--symbols", "60"], progress=True
    )
    assert prepared(tmp_path / "out") == before
    write(tmp_path / "test.en", ["only one side"])
    assert "test.ja: no such file" in refused(prepare_mt.main, arguments)


def test_a_configuration_is_replaced_only_if_nobody_changed_it(tmp_path: Path) -> None:
    write_corpus(tmp_path, ("de", "en"), train=60)
    out = tmp_path / "data"
    arguments = ["files", *map(str, files_of(tmp_path, ("de", "en"))), "--out", str(out)]
    arguments += ["--symbols", "60"]
    assert ended(prepare_mt.main, arguments) == 0
    (out / "prepare.json").unlink()  # as if a call had been killed
    assert ended(prepare_mt.main, arguments) == 0
    (out / "train.yaml").write_text((out / "train.yaml").read_text() + "layers: 2\n")
    before = prepared(out)
    assert "train.yaml: was changed, or made otherwise; rename it" in refused(
        prepare_mt.main, [*arguments, "--subwords", "separate"]
    )
    assert prepared(out) == before


@pytest.mark.parametrize(
    ("pairs", "steps"), [(29_000, 2_800), (100, 2_000), (165_392, 15_600), (4_468_840, 100_000)]
)
def test_a_larger_corpus_is_trained_on_for_longer(pairs: int, steps: int, tmp_path: Path) -> None:
    plan = parallel.SubwordPlan("bpe", 60, True, True)
    languages, models = ("de", "ja"), [Path("b.model")] * 2
    text = prepare_mt.configuration(Path("a: b"), languages, plan, models, pairs, ["x"])
    settings = yaml.safe_load(text)
    assert (settings["train_steps"], settings["valid_steps"]) == (steps, steps // 8)
    assert settings["data"]["train"]["path_tgt"] == "a: b/train.ja"
    assert settings["valid_bleu_tokenize"] == "none"


def test_the_words_that_may_follow_prepare_are_its_corpora() -> None:
    assert set(CORPORA) == {"files", *parallel.CORPORA}
    assert "`prepare files`" in GROUPS["Prepare data"]["prepare mt"][1]
    done = run("onmt_entmax", "prepare", "wmt16", "--out", "x")
    assert done.returncode == 2
    assert done.stderr.startswith("onmt-entmax prepare: error: wmt16 is not downloaded: name your ")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch) -> Iterator[tuple[Path, str]]:
    folder = tmp_path / "server"
    folder.mkdir()
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def publish(name: str, folder: Path) -> None:
    """What the makers of a corpus have put on the net, in small."""
    corpus = parallel.CORPORA[name]
    if name == "tatoeba":
        german, english = sentences("de", 2000), [f"Sentence {n // 2}." for n in range(2000)]
        rows = [f"{e}\t{g}\tCC-BY" for e, g in zip(english, german, strict=True)]
        with zipfile.ZipFile(folder / "deu-eng.zip", "w") as archive:
            archive.writestr("deu.txt", "\n".join(rows) + "\n")
        return
    contents = {}
    for language in corpus.languages:
        lines = sentences(language, 340)
        for part, chosen in (
            ("train", lines[:300]),
            ("val", lines[300:320]),
            ("test", lines[320:]),
        ):
            files = corpus.files[part]
            size = len(chosen) // len(files)
            for n, file in enumerate(files):
                text = "".join(line + "\n" for line in chosen[n * size : (n + 1) * size])
                contents[file.format(language)] = text.encode()
    if corpus.archive is None:
        for file, data in contents.items():
            (folder / file).write_bytes(data)
        return
    with tarfile.open(folder / corpus.archive, "w:gz") as archive:
        for file, data in contents.items():
            member = tarfile.TarInfo(file)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


@pytest.mark.parametrize("name", [name for name, each in parallel.CORPORA.items() if each.url])
def test_a_fetched_corpus(name: str, small, server, tmp_path: Path) -> None:
    folder, url = server
    publish(name, folder)
    out = tmp_path / "out"
    assert ended(prepare_mt.main, [name, "--url", url, "--out", str(out)]) == 0
    corpus = parallel.CORPORA[name]
    target = (out / f"val.{corpus.languages[1]}").read_text(encoding="utf-8").splitlines()
    if name == "tatoeba":
        assert len(target) == 1500
        held_out = set(target)
        rest = (out / f"train.{corpus.languages[1]}").read_text(encoding="utf-8").splitlines()
        assert rest
        assert not held_out & set(rest)
    else:
        expected = sentences(corpus.languages[1], 340)[300:]
        tested = (out / "test" / f"test.{corpus.languages[1]}").read_text(encoding="utf-8")
        assert [*target, *tested.splitlines()] == expected


def test_another_archive_than_at_the_first_download_is_refused(
    small, server, tmp_path: Path
) -> None:
    folder, url = server
    publish("kftt", folder)
    out, archive = tmp_path / "out", folder / "kftt-data-1.0.tar.gz"
    arguments = ["kftt", "--url", url, "--out", str(out)]
    assert ended(prepare_mt.main, arguments) == 0
    recorded = json.loads((out / "prepare.json").read_text())
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert recorded["downloaded"] == {archive.name: checksum}
    for name in "train.ja", "bpe.model":
        assert recorded["sha256"][name] == hashlib.sha256((out / name).read_bytes()).hexdigest()
    before = prepared(out)
    archive.write_bytes(gzip.compress(gzip.decompress(archive.read_bytes()), 1))
    assert "kftt-data-1.0.tar.gz: has another checksum" in refused(prepare_mt.main, arguments)
    assert prepared(out) == before
    (out / "prepare.json").write_text("[")  # damaged: as if nothing was downloaded
    assert ended(prepare_mt.main, arguments) == 0


def test_the_split_of_tatoeba_depends_on_no_order() -> None:
    lines = [f"e{n}\tg{n}" for n in range(3000)] + ["e7\tg7", "e7\tother"]
    shuffled = random.Random(1).sample(lines, len(lines))
    parts = parallel.split_tatoeba(lines)
    assert parts == parallel.split_tatoeba(shuffled)
    everything = {pair for pairs in parts.values() for pair in pairs}
    assert len(everything) >= 3000
    with pytest.raises(UserError, match=r"deu\.txt: line 2"):
        parallel.split_tatoeba(["a\tb", "c"])


def damaged(text: bytes) -> bytes:
    """Compressed by gzip; the second half begins with a kind of block that there is not."""
    packer = zlib.compressobj(wbits=31)
    half = packer.compress(text[: len(text) // 2]) + packer.flush(zlib.Z_FULL_FLUSH)
    return half + b"\x07"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: write(d / "dev.en", ["one"]), "20 lines and 1 line;"),
        (lambda d: write(d / "dev.en", ["a", *[""] * 19]), r"dev\.en: line 2 is empty on one"),
        (lambda d: [write(d / f"dev.{n}", []) for n in ("de", "en")], r"dev\.en: no lines"),
        (
            lambda d: [write(d / f"train.{n}", []) for n in ("de", "en")],
            r"train\.de: the file is empty",
        ),
        (lambda d: (d / "train.de").unlink(), "no such file, nor with .xz or .gz"),
        (
            lambda d: [
                (d / "train.de.gz").write_bytes(damaged((d / "train.de").read_bytes())),
                (d / "train.de").unlink(),
            ],
            r"train\.de\.gz: cannot read: Error -3",
        ),
        (lambda d: (d / "train.de").write_bytes(b"a\n\xff\n"), "line 2 is not UTF-8"),
        (lambda d: (d / "data").write_text("a file"), "data"),
    ],
)
def test_errors_are_one_line(change, message: str, tmp_path: Path) -> None:
    write_corpus(tmp_path, ("de", "en"))
    change(tmp_path)
    command = ["files", *files_of(tmp_path, ("de", "en")), "--out", tmp_path / "data"]
    with pytest.raises(UserError, match=message):
        prepare_mt.prepare(prepare_mt.parse_arguments(list(map(str, command))))
    assert not (tmp_path / "data" / "train.de").exists()


def test_a_cut_copy_or_no_server(small, tmp_path: Path, server) -> None:
    for part, file in (("train", "train.lc.norm.tok.{}"), ("val", "val.lc.norm.tok.{}")):
        for language in ("de", "en"):
            write(tmp_path / file.format(language), sentences(language, 20))
        assert part in parallel.CORPORA["multi30k"].counts
    arguments = ["multi30k", "--from", str(tmp_path), "--out", str(tmp_path / "out")]
    assert "train has 20 pairs, expected 300" in refused(prepare_mt.main, arguments, progress=True)
    fetching = ["--url", server[1], "--out", tmp_path / "out"]
    assert "cannot download" in refused(prepare_mt.main, ["tanaka", *fetching])
    archive = server[0] / "kftt-data-1.0.tar.gz"
    publish("kftt", server[0])
    for content in (b"no archive", damaged(gzip.decompress(archive.read_bytes()))):
        archive.write_bytes(content)
        line = refused(prepare_mt.main, ["kftt", *fetching])
        assert "not the archive that was expected" in line


OWN = ["files", "--out", "x", "--languages", "a", "b", "--train", "d", "e"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["files", "--out", "x"], "files needs --train and --languages"),
        (["multi30k", "--out", "x", "--languages", "de", "en"], "takes neither"),
        (["multi30k", "--out", "x", "--from", "y", "--url", "z"], "--from and --url: name one"),
        (["wmt14", "--out", "x", "--url", "file:///"], "wmt14 is not downloaded: name your copy"),
        (["tanaka", "--out", "x", "--val_size", "9"], "--val_size and --seed are of files without"),
        (["tatoeba", "--out", "x", "--seed", "9"], "--val_size and --seed are of files without"),
        ([*OWN, "--val", "f", "g", "--val_size", "9"], "--seed are of files without --val"),
        (["kftt", "--out", "x", "--symbols", "0"], "--symbols: must be "),
        (["kftt", "--out", "x", "--max_ratio", "0.5"], "--max_ratio: must be a number from 1"),
        (["kftt", "--out", "x", "--max_ratio", "nan"], "--max_ratio: must be a number from 1"),
        (["kftt", "--out", "x", "--timeout", "1e400"], "--timeout: must be above 0 and"),
        (["wmt", "--out", "x"], "invalid choice"),
        (["files", "--out", "x", "--languages", "a/b", "c", "--train", "d", "e"], "without /"),
        (["files", "--out", "x", "--languages", "a", "a", "--train", "d", "e"], "two different"),
    ],
)
def test_arguments_that_do_not_fit(arguments: list[str], message: str) -> None:
    assert message in refused(prepare_mt.main, arguments)


def test_options_of_the_tokeniser_are_read_and_never_run(tmp_path: Path) -> None:
    write(tmp_path / "a", ["a b"])
    data = json.dumps({"c": {"path_src": "a", "path_tgt": "a"}})
    command = ["-data", data, "-save_model", "run", "-transforms", "onmt_tokenize"]
    command += ["-src_onmttok_kwargs", "print('executed') or {}"]
    error = fail("train.py", *command, cwd=tmp_path)
    assert "src_onmttok_kwargs: expected a mapping such as {'mode': 'space'}" in error
