"""`onmt_entmax.released` and `onmt-entmax fetch-model`: archives are what they say, or refused."""

import argparse
import hashlib
import io
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from onmt_entmax import Inflector, released
from onmt_entmax.checksums import differences
from onmt_entmax.cli import fetch_model, inflect
from onmt_entmax.data.inflection import encode_source
from onmt_entmax.released import ReleaseError, cache_folder, model_folder, pretrained, unpack
from onmt_entmax.translator import Translator
from tests.ended import ended
from tests.inflection_models import write_model, zipped


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("released") / released.PRETRAINED, 22)


@pytest.fixture(scope="module")
def archive(model: Path) -> Path:
    path = model.with_suffix(".zip")
    zipped(model, path)
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of an installed package; the current folder is empty."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(released, "__file__", str(tmp_path / "site-packages/onmt_entmax/x.py"))
    return tmp_path / "cache/onmt_entmax/models"


def repacked(archive: Path, change: Callable[[dict[str, bytes]], None]) -> bytes:
    """Return an archive with other files."""
    with zipfile.ZipFile(archive) as file:
        files = {name: file.read(name) for name in file.namelist()}
    change(files)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return made.getvalue()


def test_an_archive_becomes_a_folder(archive, model, tmp_path):
    folder = unpack(archive.read_bytes(), "x.zip", tmp_path / "models")
    assert folder == tmp_path / "models" / model.name
    for path in model.iterdir():
        assert (folder / path.name).read_bytes() == path.read_bytes()
    assert os.listdir(folder.parent) == [model.name]
    with model_folder(archive) as opened:
        assert Inflector([opened]).languages == ["english", "german"]
    assert not opened.exists()
    with model_folder(model) as opened:
        assert opened == model


def named(name: str) -> Callable[[dict[str, bytes]], None]:
    return lambda files: files.__setitem__(name, b"x")


M = released.PRETRAINED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (named(f"{M}/../../escaped"), "an archive of a model has files in one folder"),
        (named("/tmp/escaped"), "an archive of a model has files in one folder"),
        (named(f"{M}/a\\b"), "an archive of a model has files in one folder"),
        (named(f"{M}/.hidden"), "an archive of a model has files in one folder"),
        (named("../x"), "an archive of a model has files in one folder"),
        (named(f"{M}/deep/er"), "an archive of a model has files in one folder"),
        (named("x\x1b[2J"), r" x\x1b[2J: "),
        (named("other/file"), "not an archive of one model folder"),
        (lambda files: files.pop(f"{M}/SHA256SUMS"), "one model folder with its SHA256SUMS"),
        (lambda files: files.clear(), "not an archive of one model folder"),
        (named(f"{M}/vocab.json"), "vocab.json: its content is not what was written"),
        (named(f"{M}/SHA256SUMS"), "its SHA256SUMS is damaged"),
        (named(f"{M}/more"), "more: was not there when the folder was written"),
        (lambda files: files.pop(f"{M}/vocab.json"), "vocab.json: is missing"),
        (lambda files: files.update({f"{M}/{i}": b"" for i in range(65)}), "more than 64 files"),
        (lambda files: files.update({f"{M}/{i}": b"" for i in range(2000)}), "too many files"),
        (named(f"{M}/{'x' * 200}"), "an archive of a model has files in one folder"),
    ],
)
def test_an_archive_that_is_refused(archive, tmp_path, change, message):
    content = repacked(archive, change)
    with pytest.raises(ReleaseError) as raised:
        unpack(content, "x.zip", tmp_path / "into")
    assert str(raised.value).startswith("x.zip: ")
    assert message in str(raised.value)
    assert str(tmp_path) not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "into").exists()


def test_a_file_that_is_larger_than_any_model_is_not_unpacked(archive, tmp_path, monkeypatch):
    monkeypatch.setattr(released, "LARGEST", 100_000)
    bomb = repacked(archive, lambda files: files.update({f"{M}/zeros": b"\0" * 200_000}))
    monkeypatch.setattr(zipfile.ZipFile, "read", None)
    with pytest.raises(ReleaseError, match="too large"):
        unpack(bomb, "x.zip", tmp_path)


def linked(content: bytes) -> bytes:
    """Return an archive whose first file is a link."""
    made = io.BytesIO(content)
    with zipfile.ZipFile(made, "a") as file:
        entry = zipfile.ZipInfo(f"{M}/link")
        entry.external_attr = 0o120777 << 16
        file.writestr(entry, "/etc/passwd")
    return made.getvalue()


def twice(content: bytes) -> bytes:
    made = io.BytesIO(content)
    with zipfile.ZipFile(made, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr(f"{M}/vocab.json", "{}")
    return made.getvalue()


def encrypted(content: bytes) -> bytes:
    """Return an archive whose first file is marked as encrypted."""
    place = content.find(b"PK\x01\x02") + 8
    return content[:place] + b"\x01" + content[place + 1 :]


def misnamed(content: bytes) -> bytes:
    """Return an archive whose first name claims to be UTF-8, but is not."""
    place = content.find(b"PK\x01\x02")
    changed = bytearray(content)
    changed[place + 9], changed[place + 46] = 8, 255
    return bytes(changed)


def damaged(kind: int):
    """Return a function that makes an archive whose first file is compressed and then damaged."""

    def make(content: bytes) -> bytes:
        made, name = io.BytesIO(), f"{M}/SHA256SUMS"
        with zipfile.ZipFile(made, "w", kind) as file:
            file.writestr(name, "x" * 100)
        content, place = made.getvalue(), 34 + len(name)
        return content[:place] + b"\xff" * 5 + content[place + 5 :]

    return make


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content[:-100], "not a zip archive, or damaged"),
        (lambda content: content[: len(content) // 2], "not a zip archive, or damaged"),
        (lambda content: b"", "not a zip archive, or damaged"),
        (lambda content: content[:200] + b"\xff" + content[201:], "not a zip archive, or damaged"),
        (encrypted, "not a zip archive, or damaged"),
        (lambda content: content[:-3] + b"\x7f" + content[-2:], "not a zip archive, or damaged"),
        (misnamed, "not a zip archive, or damaged"),
        (damaged(zipfile.ZIP_BZIP2), "not a zip archive, or damaged"),
        (damaged(zipfile.ZIP_LZMA), "not a zip archive, or damaged"),
        (linked, "has files in one folder, and nothing else"),
        (twice, "vocab.json is in it twice"),
        (lambda content: content[:-22] + b"PK\x06\x07" + b"\0" * 16 + content[-22:], "not a zip"),
    ],
)
def test_bytes_that_are_no_archive(archive, tmp_path, change, message):
    with pytest.raises(ReleaseError, match=message):
        unpack(change(archive.read_bytes()), "x.zip", tmp_path / "into")
    assert not (tmp_path / "into").exists()


def test_no_flipped_byte_goes_unnoticed(archive, model, tmp_path):
    content = archive.read_bytes()
    for place in range(0, len(content), len(content) // 40):
        changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        try:
            folder = unpack(changed, "x.zip", tmp_path)
        except ReleaseError:
            continue
        for path in model.iterdir():  # a date, for instance, was changed
            assert (tmp_path / folder.name / path.name).read_bytes() == path.read_bytes()


def test_where_models_are_kept(cache, monkeypatch):
    assert cache_folder() == cache
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_folder() == Path("/home/me/.cache/onmt_entmax/models")


def test_fetched_and_used_without_naming_it(archive, cache, capsys):
    """An installed package says what to do, does it, and then inflects."""
    query = ["english", "ab", "V;PST"]
    assert ended(inflect.main, query) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert M in line
    assert "`inflect --model PATH`" in line
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert ended(fetch_model.main, [archive.as_uri(), "--sha256", checksum.upper()]) == 0
    assert capsys.readouterr().out.startswith(f"{cache / M}: fetched")
    assert pretrained() == cache / M
    assert ended(inflect.main, query) == 0
    assert capsys.readouterr().out.startswith("english\tab\tV;PST\t1\t")


def test_an_installed_package_finds_the_model_of_its_wheel(model, cache, tmp_path, monkeypatch):
    monkeypatch.setattr(released.sysconfig, "get_path", lambda name: str(tmp_path / name))
    place = tmp_path / "data/share/onmt_entmax/models" / M
    shutil.copytree(model, place)
    assert pretrained() == place


@pytest.mark.parametrize(
    ("address", "sha256", "message"),
    [
        ("@", "0" * 64, "has another checksum than the known file"),
        ("@.none", "0" * 64, "cannot download"),
        ("inflection-86", "0" * 64, "inflection-86: is no address: it begins with https"),
    ],
)
def test_what_cannot_be_fetched_leaves_nothing(archive, cache, capsys, address, sha256, message):
    address = address.replace("@", archive.as_uri())
    assert ended(fetch_model.main, [address, "--sha256", sha256]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not cache.exists()


def test_the_model_of_this_checkout():
    """Its files are as listed and small enough for a repository; the words are of the README."""
    folder = pretrained()
    assert folder == Path(released.__file__).resolve().parents[1] / "data" / "models" / M
    assert differences(folder) == []
    assert sum(path.stat().st_size for path in folder.iterdir()) < 22_000_000
    inflector = Inflector(folder, n_best=0)
    assert len(inflector.languages) == 86
    spanish = inflector.inflect("spanish", "preferir", "V;SBJV;PST;3;SG")
    assert ([form.text for form in spanish.forms], spanish.level) == (["prefiriese"], "only")
    turkish = inflector.inflect("turkish", "kitap", "N;ACC;SG")
    assert [form.text for form in turkish.forms] == ["kitabı", "kitapı"]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "Languages: " + ", ".join(inflector.languages) + "." in card
    translator = Translator.from_folders(folder)
    source = " ".join(encode_source("turkish", "kitap", ["N", "ACC", "SG"]))
    assert next(translator.answers([source])).lines(1) == ["k i t a b ı"]


def test_a_checksum_is_64_digits():
    assert fetch_model.checksum("A" * 64) == "a" * 64
    for text in ("abc", "g" * 64, "a" * 65):
        with pytest.raises(argparse.ArgumentTypeError, match="must be 64 hexadecimal digits"):
            fetch_model.checksum(text)
