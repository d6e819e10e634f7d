"""The pretrained model: fetched by `onmt-entmax fetch-model`, or missing, with advice."""

import hashlib
import re
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import fetch_model, inflect
from onmt_entmax.files import released
from onmt_entmax.files.released import pretrained
from tests.in_process import exit_status, refusal
from tests.inflection_models import write_model, zipped

NAME = released.PRETRAINED
QUERY = ("english", "ab", "V;PST")  # for `inflect`, which uses the pretrained model by default


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
    """Imitate an installed package without a model; return its cache folder, which is absent."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        released, "__file__", str(tmp_path / "site-packages/onmt_entmax/files/x.py")
    )
    return tmp_path / "cache/onmt_entmax/models"


# --- fetching the model ---


class Fetched(NamedTuple):
    """The folder of a model that was fetched, and what was printed."""

    folder: Path
    printed: str


@pytest.fixture
def checksum(archive: Path) -> str:
    return hashlib.sha256(archive.read_bytes()).hexdigest()


@pytest.fixture
def fetched(
    archive: Path, checksum: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> Fetched:
    assert exit_status(fetch_model.main, [archive.as_uri(), "--sha256", checksum]) == 0
    return Fetched(cache / NAME, capsys.readouterr().out)


def test_a_fetch_names_the_folder(fetched: Fetched) -> None:
    assert fetched.printed.startswith(f"{fetched.folder}: fetched")


def test_a_fetched_model_is_the_pretrained_one(fetched: Fetched) -> None:
    assert pretrained() == fetched.folder


@pytest.mark.usefixtures("fetched")
def test_a_fetched_model_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(inflect.main, QUERY) == 0
    assert capsys.readouterr().out.startswith("english\tab\tV;PST\t1\t")


def test_a_checksum_may_have_capital_letters(archive: Path, checksum: str, cache: Path) -> None:
    assert exit_status(fetch_model.main, [archive.as_uri(), "--sha256", checksum.upper()]) == 0
    assert (cache / NAME).is_dir()


@pytest.mark.parametrize(
    ("address", "sha256", "message"),
    [
        pytest.param(
            "{archive}",
            "0" * 64,
            "has another checksum than the known file",
            id="another checksum",
        ),
        pytest.param(
            "{archive}.none",
            "0" * 64,
            "run again, or use a local copy (-h says how)",
            id="no such file",
        ),
        pytest.param(
            "inflection-86",
            "0" * 64,
            "inflection-86: is no address: it begins with https",
            id="no address",
        ),
        pytest.param("{archive}", "0" * 63, "must be 64 hexadecimal digits", id="no checksum"),
    ],
)
def test_a_refused_fetch_leaves_nothing(
    archive: Path,
    cache: Path,
    capsys: pytest.CaptureFixture[str],
    address: str,
    sha256: str,
    message: str,
) -> None:
    address = address.format(archive=archive.as_uri())
    assert exit_status(fetch_model.main, [address, "--sha256", sha256]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not cache.exists()


# Bytes to change, from where the entry of the weights begins in the archive: its header takes less
# than 100, and its compressed content more than 200.
DAMAGE = slice(100, 200)


def damaged_copy(archive: Path, method: int) -> Path:
    """Write the archive with a compression and with damaged weights; return its path."""
    packed = archive.with_name("damaged.zip")
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(packed, "w", method) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
        weights = target.getinfo(f"{NAME}/model.safetensors").header_offset
    content = bytearray(packed.read_bytes())
    for position in range(weights + DAMAGE.start, weights + DAMAGE.stop):
        content[position] ^= 0xFF
    packed.write_bytes(content)
    return packed


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(zipfile.ZIP_DEFLATED, id="deflate"),
        pytest.param(zipfile.ZIP_BZIP2, id="bzip2"),
        pytest.param(zipfile.ZIP_LZMA, id="LZMA"),
    ],
)
def test_a_damaged_archive_is_refused_in_one_line(
    archive: Path, cache: Path, capsys: pytest.CaptureFixture[str], method: int
) -> None:
    """Its checksum is the one that was named: that of the damaged archive."""
    damaged = damaged_copy(archive, method)
    sha256 = hashlib.sha256(damaged.read_bytes()).hexdigest()
    assert exit_status(fetch_model.main, [damaged.as_uri(), "--sha256", sha256]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(r": (damaged, or cannot be unpacked|not a zip archive of a model) \(", line)
    assert not cache.exists()


# --- without the model ---


@pytest.fixture
def checkout(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Imitate a checkout without models, and return its folder."""
    folder = cache.parents[2] / "checkout"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    monkeypatch.setattr(released, "__file__", str(folder / "onmt_entmax/files/x.py"))
    return folder


class TestWithoutThePretrainedModel:
    """The error of a command that needs it says what to do."""

    @pytest.mark.usefixtures("cache")
    def test_an_installed_package_should_be_reinstalled(self) -> None:
        line = refusal(inflect.main, QUERY)
        assert f"share/onmt_entmax/models/{NAME}: the pretrained model is missing" in line
        assert "; reinstall the package, whose wheel has it, " in line

    def test_the_files_of_a_checkout_should_be_restored(self, checkout: Path) -> None:
        line = refusal(inflect.main, QUERY)
        assert f"{checkout}/data/models/{NAME}: the pretrained model is missing" in line
        assert "; restore it (`git restore data/models`), " in line
        assert "wheel" not in line

    @pytest.mark.usefixtures("cache")
    def test_a_model_may_be_fetched(self) -> None:
        assert "fetch it (`onmt-entmax fetch-model -h`)" in refusal(inflect.main, QUERY)
