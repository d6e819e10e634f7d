"""Released models and `onmt-entmax fetch-model`: archives are what they say, or refused."""

import hashlib
import io
import os
import signal
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from onmt_entmax import Inflector
from onmt_entmax.cli import fetch_model, inflect
from onmt_entmax.errors import UserError
from onmt_entmax.files import released
from onmt_entmax.files.checksums import differences
from onmt_entmax.files.released import pretrained, unpack
from tests.ended import ended
from tests.inflection_models import write_model, zipped

M = released.PRETRAINED


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("released") / M, 22)


@pytest.fixture(scope="module")
def archive(model: Path) -> Path:
    path = model.with_suffix(".zip")
    zipped(model, path)
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch) -> Path:
    """The cache folder of an installed package; the current folder is empty."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        released, "__file__", str(tmp_path / "site-packages/onmt_entmax/files/x.py")
    )
    return tmp_path / "cache/onmt_entmax/models"


def repacked(archive: Path, change: Callable[[dict[str, bytes]], object]) -> bytes:
    """Return an archive with other files."""
    with zipfile.ZipFile(archive) as file:
        files = {name: file.read(name) for name in file.namelist()}
    change(files)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in files.items():
            file.writestr(name, data)
    return content.getvalue()


def named(name: str) -> Callable[[dict[str, bytes]], object]:
    return lambda files: files.update({name: b"x"})


def test_an_archive_becomes_a_folder(archive: Path, model: Path, tmp_path: Path) -> None:
    folder = unpack(archive.read_bytes(), "x.zip", tmp_path / "models")
    assert folder == tmp_path / "models" / M
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {
        p.name: p.read_bytes() for p in model.iterdir()
    }
    assert os.listdir(folder.parent) == [M]


@pytest.mark.parametrize(
    "change",
    [
        named(f"{M}/../../escaped"), named("/tmp/escaped"), named("other/file"), named(f"{M}/more"),
        named(f"{M}/vocab.json"), named(f"{M}/SHA256SUMS"), lambda files: files.clear(),
        lambda files: files.pop(f"{M}/SHA256SUMS"), lambda files: files.pop(f"{M}/vocab.json"),
        lambda files: files.update({f"{M}/zeros": b"\0" * 200_000}),
    ],
)  # fmt: skip
def test_an_archive_that_is_refused(archive, tmp_path, monkeypatch, change) -> None:
    monkeypatch.setattr(released, "LARGEST", 200_000)
    before = sorted(tmp_path.parent.iterdir())
    with pytest.raises(UserError, match=r"^x.zip: [^\n]+$"):
        unpack(repacked(archive, change), "x.zip", tmp_path / "into")
    assert not (tmp_path / "into").exists()
    assert sorted(tmp_path.parent.iterdir()) == before
    assert not Path("/tmp/escaped").exists()


def listed_zeros(files: dict[str, bytes]) -> None:
    """Add a large file, with its checksum in order, which packs to nothing."""
    files[f"{M}/zeros"] = content = b"\0" * 200_000
    line = f"{hashlib.sha256(content).hexdigest()}  zeros\n"
    files[f"{M}/SHA256SUMS"] += line.encode()


def many(files: dict[str, bytes]) -> None:
    """Add many files that take no room, with their checksums in order."""
    digest = hashlib.sha256(b"").hexdigest()
    for number in range(1001):
        files[f"{M}/{number}"] = b""
        files[f"{M}/SHA256SUMS"] += f"{digest}  {number}\n".encode()


@pytest.mark.parametrize("change", [listed_zeros, many])
def test_an_archive_that_holds_too_much_is_not_unpacked(
    archive, tmp_path, monkeypatch, change
) -> None:
    """Everything else about it is in order."""
    content = repacked(archive, change)
    if change is listed_zeros:
        assert (unpack(content, "x.zip", tmp_path / "into") / "zeros").stat().st_size == 200_000
        monkeypatch.setattr(released, "LARGEST", 200_000)
    monkeypatch.setattr(zipfile.ZipFile, "extractall", lambda *_: pytest.fail("unpacked"))
    with pytest.raises(UserError, match=r"x.zip: .*it holds more than [0-9,]+ bytes or 1000 files"):
        unpack(content, "x.zip", tmp_path / "other")


def test_a_full_disk_is_not_taken_for_damage(archive, tmp_path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "extractall", full)
    with pytest.raises(UserError, match=r"x.zip: damaged, or cannot be unpacked .No space left"):
        unpack(archive.read_bytes(), "x.zip", tmp_path / "into")


def test_a_signal_while_unpacking_leaves_nothing(archive, tmp_path, monkeypatch) -> None:
    extract = zipfile.ZipFile.extractall

    def end(*arguments: object) -> None:
        extract(*arguments)
        os.kill(os.getpid(), signal.SIGTERM)

    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(zipfile.ZipFile, "extractall", end)
    with pytest.raises(SystemExit) as ended:
        unpack(archive.read_bytes(), "x.zip", tmp_path / "into")
    assert ended.value.code == 128 + signal.SIGTERM
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["temporary"]


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_is_damaged_is_one_line(archive, cache, capsys, method) -> None:
    """Though its checksum fits: it was damaged before it was measured."""
    with zipfile.ZipFile(archive) as file:
        files = {name: file.read(name) for name in file.namelist()}
    packed = archive.with_name("packed.zip")
    with zipfile.ZipFile(packed, "w", method) as file:
        for name, data in files.items():
            file.writestr(name, data)
        place = file.getinfo(f"{M}/model.safetensors").header_offset
    content, damaged = bytearray(packed.read_bytes()), archive.with_name("damaged.zip")
    for at in range(place + 100, place + 200):
        content[at] ^= 0xFF
    damaged.write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    assert ended(fetch_model.main, [damaged.as_uri(), "--sha256", sha256]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{damaged.as_uri()}: " in line
    assert not cache.exists()


def test_fetched_and_used_without_naming_it(archive, cache, capsys) -> None:
    """An installed package says what to do, does it, and then inflects."""
    query = ["english", "ab", "V;PST"]
    assert ended(inflect.main, query) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{M}: the pretrained model is missing" in line
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert ended(fetch_model.main, [archive.as_uri(), "--sha256", checksum.upper()]) == 0
    assert capsys.readouterr().out.startswith(f"{cache / M}: fetched")
    assert pretrained() == cache / M
    assert ended(inflect.main, query) == 0
    assert capsys.readouterr().out.startswith("english\tab\tV;PST\t1\t")


@pytest.mark.parametrize(
    ("address", "sha256", "message"),
    [
        ("@", "0" * 64, "has another checksum than the known file"),
        ("@.none", "0" * 64, "cannot download"),
        ("inflection-86", "0" * 64, "inflection-86: is no address: it begins with https"),
        ("@", "0" * 63, "must be 64 hexadecimal digits"),
    ],
)
def test_what_cannot_be_fetched_leaves_nothing(
    archive, cache, capsys, address, sha256, message
) -> None:
    address = address.replace("@", archive.as_uri())
    assert ended(fetch_model.main, [address, "--sha256", sha256]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not cache.exists()


def test_the_model_of_this_checkout() -> None:
    """Its files are as listed and small enough for a repository; the words are of the README."""
    folder = pretrained()
    assert folder == Path(released.__file__).resolve().parents[2] / "data" / "models" / M
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
