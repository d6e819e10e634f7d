"""Released models and `onmt-entmax fetch-model`: the archive is what it says, or refused."""

import hashlib
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax import Inflector
from onmt_entmax.cli import fetch_model, inflect
from onmt_entmax.files import released
from onmt_entmax.files.checksums import differences
from onmt_entmax.files.released import pretrained
from tests.in_process import exit_status, refusal
from tests.inflection_models import write_model, zipped

NAME = released.PRETRAINED


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model, in a folder with the name of the pretrained one."""
    return write_model(tmp_path_factory.mktemp("released") / NAME, 22)


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
    monkeypatch.setattr(
        released, "__file__", str(tmp_path / "site-packages/onmt_entmax/files/x.py")
    )
    return tmp_path / "cache/onmt_entmax/models"


def damage(archive: Path, method: int) -> Path:
    """Write the archive with another compression, and a hundred other bytes in its weights."""
    packed = archive.with_name("damaged.zip")
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(packed, "w", method) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
        weights = target.getinfo(f"{NAME}/model.safetensors").header_offset
    content = bytearray(packed.read_bytes())
    for position in range(weights + 100, weights + 200):
        content[position] ^= 0xFF
    packed.write_bytes(content)
    return packed


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_is_damaged_is_one_line(
    archive: Path, cache: Path, capsys: pytest.CaptureFixture[str], method: int
) -> None:
    """Though its checksum fits: it was damaged before it was measured."""
    damaged = damage(archive, method)
    sha256 = hashlib.sha256(damaged.read_bytes()).hexdigest()
    assert exit_status(fetch_model.main, [damaged.as_uri(), "--sha256", sha256]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{damaged.as_uri()}: " in line
    assert not cache.exists()


QUERY = ("english", "ab", "V;PST")


@pytest.fixture
def checkout(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a checkout without models; the cache has none, either."""
    folder = cache.parents[2] / "checkout"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    monkeypatch.setattr(released, "__file__", str(folder / "onmt_entmax/files/x.py"))
    return folder


class TestWithoutThePretrainedModel:
    """A command says what to do."""

    @pytest.mark.usefixtures("cache")
    def test_an_installed_package_is_to_be_reinstalled(self) -> None:
        line = refusal(inflect.main, QUERY)
        assert f"share/onmt_entmax/models/{NAME}: the pretrained model is missing" in line
        assert "; reinstall the package, whose wheel has it, " in line

    def test_a_checkout_is_to_be_restored(self, checkout: Path) -> None:
        line = refusal(inflect.main, QUERY)
        assert f"{checkout}/data/models/{NAME}: the pretrained model is missing" in line
        assert "; restore it (`git restore data/models`), " in line
        assert "wheel" not in line

    @pytest.mark.usefixtures("cache")
    def test_a_model_may_be_fetched(self) -> None:
        assert "fetch it (`onmt-entmax fetch-model -h`)" in refusal(inflect.main, QUERY)


class Fetched(NamedTuple):
    """The folder of a model that was fetched, and what was printed."""

    folder: Path
    printed: str


@pytest.fixture
def fetched(archive: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> Fetched:
    """Its checksum was named in capital letters."""
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert exit_status(fetch_model.main, [archive.as_uri(), "--sha256", checksum.upper()]) == 0
    return Fetched(cache / NAME, capsys.readouterr().out)


def test_a_fetch_names_the_folder(fetched: Fetched) -> None:
    assert fetched.printed.startswith(f"{fetched.folder}: fetched")


def test_a_model_that_was_fetched_is_the_pretrained_one(fetched: Fetched) -> None:
    assert pretrained() == fetched.folder


@pytest.mark.usefixtures("fetched")
def test_a_model_that_was_fetched_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(inflect.main, QUERY) == 0
    assert capsys.readouterr().out.startswith("english\tab\tV;PST\t1\t")


@pytest.mark.parametrize(
    ("address", "sha256", "message"),
    [
        ("@", "0" * 64, "has another checksum than the known file"),
        ("@.none", "0" * 64, "run again, or use a local copy (-h says how)"),
        ("inflection-86", "0" * 64, "inflection-86: is no address: it begins with https"),
        ("@", "0" * 63, "must be 64 hexadecimal digits"),
    ],
)
def test_a_fetch_that_is_refused_leaves_nothing(
    archive: Path,
    cache: Path,
    capsys: pytest.CaptureFixture[str],
    address: str,
    sha256: str,
    message: str,
) -> None:
    address = address.replace("@", archive.as_uri())
    assert exit_status(fetch_model.main, [address, "--sha256", sha256]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not cache.exists()


class TestTheModelOfThisCheckout:
    @pytest.fixture(scope="class")
    def folder(self) -> Path:
        return pretrained()

    @pytest.fixture(scope="class")
    def inflector(self, folder: Path) -> Inflector:
        return Inflector(folder, n_best=0)

    def test_is_the_pretrained_one(self, folder: Path) -> None:
        assert folder == Path(released.__file__).resolve().parents[2] / "data" / "models" / NAME

    def test_has_the_files_of_its_list(self, folder: Path) -> None:
        assert differences(folder) == []

    def test_is_small_enough_for_a_repository(self, folder: Path) -> None:
        assert sum(path.stat().st_size for path in folder.iterdir()) < 22_000_000

    @pytest.mark.parametrize(
        ("language", "lemma", "tags", "forms"),
        [
            ("spanish", "preferir", "V;SBJV;PST;3;SG", ["prefiriese"]),
            ("turkish", "kitap", "N;ACC;SG", ["kitabı", "kitapı"]),
        ],
    )
    def test_inflects_the_words_of_the_readme(
        self, inflector: Inflector, language: str, lemma: str, tags: str, forms: list[str]
    ) -> None:
        inflection = inflector.inflect(language, lemma, tags)
        assert [form.text for form in inflection.forms] == forms

    def test_is_sure_of_one_form(self, inflector: Inflector) -> None:
        assert inflector.inflect("spanish", "preferir", "V;SBJV;PST;3;SG").level == "only"

    def test_has_the_languages_of_its_card(self, inflector: Inflector, folder: Path) -> None:
        assert len(inflector.languages) == 86
        card = (folder / "README.md").read_text(encoding="utf-8")
        assert "Languages: " + ", ".join(inflector.languages) + "." in card
